// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

// SQL that leads from the version before. Tables and views are described for people in docs/results-file.md.

/// Version 1.
extern const char* const kSchemaV1;

/// Version 2: that a run is to stop is stored, so that its worker hears of it although it was away and the
/// scheduler started anew in between.
extern const char* const kSchemaV2;

/// Version 3: which weights a trial's recipe names and which a worker has, so that a trial waits for a worker
/// that has them; and which file a name stands for. Trials that are there already say it in their documents.
extern const char* const kSchemaV3;

/// Version 4: the store has an identity of its own, so that a worker can tell that a results file was
/// restored or exchanged under its scheduler; a trial can be held back from the queue; a table knows what is
/// wrong with its numbers: the best by the column's direction, what a completed run lacks, what was refused,
/// equal curves, results made before a correction.
extern const char* const kSchemaV4;

/// Version 5: whether a smaller unit may stand in for a column's, until now a '?' behind it; and cells say
/// how many of their runs diverged, and take the newest count of each architecture, as the table does.
extern const char* const kSchemaV5;

/// Version 6: which slots of its worker a run has, until now noted in the worker's list of slots.
extern const char* const kSchemaV6;

/// Version 7: what a look at the queue or at a sweep needs is kept and not counted: trials that need the same
/// of a worker have one shape and wait for one reason; of each sweep the trials by state.
extern const char* const kSchemaV7;

/// Version 8: labels and quarantines of workers, what is held because it fails, what runs took and need,
/// removal piece by piece, and whose failure the end of a run is.
extern const char* const kSchemaV8;

/// Version 9: where sweeps come from and how they grow; archives; chains of trials; what a paper prints
/// beside what is trained; what plans predict and calibrations measured.
extern const char* const kSchemaV9;

/// Version 10: how rows are tuned before their seeds are trained.
extern const char* const kSchemaV10;

/// Version 11: tokens, and who did what.
extern const char* const kSchemaV11;

/// Version 12: trials over several workers.
extern const char* const kSchemaV12;

/// Version 13: what probes found in trained models.
extern const char* const kSchemaV13;

/// Version 14: tags, notes, pins, and what is put away.
extern const char* const kSchemaV14;

/// Version 15: what runs take of their machines over time.
extern const char* const kSchemaV15;

/// Version 16: what long stretches of curves look like. Runs from before are read point by point.
extern const char* const kSchemaV16;

}  // namespace abl::storage
