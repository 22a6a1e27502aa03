// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { live } from "./live/live";
import { keepPlaces } from "./scroll";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/pages.css";
import "./styles/acting.css";
import "./styles/annotations.css";
import "./styles/charts.css";
import "./styles/curves.css";
import "./styles/decisions.css";
import "./styles/table.css";
import "./styles/settings.css";
import "./styles/probes.css";
import "./styles/difference.css";
import "./styles/design.css";

keepPlaces();
live.start();
render(<App />, document.getElementById("app")!);
