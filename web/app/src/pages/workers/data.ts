// SPDX-License-Identifier: Apache-2.0
// What GET /workers answers: ablate.v1.ListWorkersResponse.

export interface Slot {
  index: number;
  device: string;
  name: string;
  threads: number;
  /** Under way in it; 0: free. */
  run: number;
}

export interface Worker {
  name: string;
  host: string;
  connected: boolean;
  last_heartbeat?: string;
  slots: Slot[];
  runs: number[];
  version: string;
  result_version: number;
  allows_commands: boolean;
  data: string[];
  weights: string[];
  note: string;
}

export interface Workers {
  workers: Worker[];
}
