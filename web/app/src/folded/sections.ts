// SPDX-License-Identifier: Apache-2.0
import { Events } from "./events";
import { PlanAgain } from "./plan_again";
import { Provenance } from "./provenance";
import { RunProvenance } from "./run_provenance";
import { TrainAgain } from "./train_again";

/** What stands folded at the ends of pages: read together, once one of it is unfolded. */
export default { Events, PlanAgain, Provenance, RunProvenance, TrainAgain };
