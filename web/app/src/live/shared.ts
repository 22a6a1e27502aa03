// SPDX-License-Identifier: Apache-2.0
// The script of the SharedWorker in which the browser's one event stream lives.
import { Tabs } from "./tabs";

const tabs = new Tabs();
(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) =>
  tabs.add(event.ports[0]!);
