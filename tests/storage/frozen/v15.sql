BEGIN TRANSACTION;
CREATE TABLE access_token (
  id TEXT PRIMARY KEY,           -- the public part: for lists, logs and revocation
  role TEXT NOT NULL CHECK (role IN ('viewer', 'submitter', 'admin', 'worker', 'join')),  -- join: is exchanged once for a worker's
  name TEXT NOT NULL,            -- of its holder: a person, or a worker
  sha256 TEXT NOT NULL UNIQUE,   -- of the whole token, which is stored nowhere
  made_by TEXT NOT NULL,         -- name of who made it; of a worker's the id of the join token that it was exchanged for
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,            -- NULL: never
  revoked_ms INTEGER,            -- NULL: it is not
  used_ms INTEGER,               -- of a join token: when it was exchanged
  seen_ms INTEGER                -- last use, to a minute
) STRICT, WITHOUT ROWID;
CREATE TABLE archive (
  store_id TEXT NOT NULL,        -- of the store that it was made of
  points TEXT NOT NULL CHECK (points IN ('all', 'thin', 'none')),  -- which metric points it has; summaries are of all
  checkpoints TEXT NOT NULL CHECK (checkpoints IN ('none', 'last', 'best'))
, digest TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE audit (             -- the newest 100000
  id INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  token TEXT NOT NULL,           -- access_token.id, or '' of this machine's owner
  who TEXT NOT NULL,             -- name of its holder then, or 'local'
  what TEXT NOT NULL,            -- the request: Submit
  target TEXT NOT NULL,          -- sweep, worker or token that it was for, or ''
  outcome TEXT NOT NULL          -- ok, or why not
) STRICT;
CREATE TABLE calibration (
  device TEXT NOT NULL,           -- "AMD EPYC 7B13", "NVIDIA H100 80GB HBM3"
  threads INTEGER NOT NULL,       -- of a CPU; 0: a GPU
  step_hash TEXT NOT NULL,        -- SHA-256 of what makes a step what it is: the configuration without its length and seed
  config TEXT NOT NULL,           -- canonical document of the trial that was measured, without the seed
  time_ms INTEGER NOT NULL,       -- when
  batch INTEGER NOT NULL,         -- images of the steps that were measured; 0: the recipe's, otherwise that follows from them
  step_ms REAL NOT NULL,          -- of the recipe's batch, at the mean
  step_spread REAL NOT NULL,      -- their standard deviation, as a share of that
  steps INTEGER NOT NULL,         -- how many
  image_ms REAL NOT NULL,         -- an image that is evaluated
  start_ms REAL NOT NULL,         -- from the start of the program to the first step
  checkpoint_ms REAL NOT NULL,    -- until its file is there
  base_bytes REAL NOT NULL,       -- of the process before it builds its model; 0: not measured
  train_images INTEGER NOT NULL,  -- of its data; 0: they were not there, images were drawn
  val_images INTEGER NOT NULL,
  PRIMARY KEY (device, threads, step_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoint (
  run_id INTEGER NOT NULL REFERENCES run,
  step INTEGER NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL, best TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;
INSERT INTO "checkpoint" VALUES(1,20,'gpu-01','/runs/1/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(2,20,'gpu-01','/runs/1/2/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(3,20,'gpu-01','/runs/2/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(4,20,'gpu-01','/runs/3/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(5,20,'gpu-01','/runs/4/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(6,20,'gpu-01','/runs/4/2/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(7,20,'gpu-01','/runs/6/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(8,20,'gpu-01','/runs/7/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
INSERT INTO "checkpoint" VALUES(9,20,'gpu-01','/runs/8/1/checkpoint-20.safetensors','abababababababababababababababababababababababababababababababab','');
CREATE TABLE checkpoint_piece (  -- the files of checkpoints, in an archive that has them
  run_id INTEGER NOT NULL,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (run_id, step, position),
  FOREIGN KEY (run_id, step) REFERENCES checkpoint (run_id, step)
) STRICT;
CREATE TABLE data_pin (          -- the first fingerprint reported for a data name; another is refused
  data TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  run_id INTEGER NOT NULL REFERENCES run
) STRICT, WITHOUT ROWID;
INSERT INTO "data_pin" VALUES('cifar10','f1',1);
CREATE TABLE growth_due (        -- rows that are to be looked at: a seed of theirs has ended, or was claimed
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row INTEGER NOT NULL,          -- sweep_row.position
  pass INTEGER NOT NULL DEFAULT 0,   -- 0: the row itself; then the rows that are compared with it: 1: their p, 2: what becomes of them
  next INTEGER NOT NULL DEFAULT 0,   -- of these the ones from this position on
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE growth_rule (       -- of a sweep with a seeds_rule: what its rows are judged by
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  revision INTEGER NOT NULL,     -- of the sweep that this is of
  source TEXT NOT NULL,          -- metric of the rule's column
  take TEXT NOT NULL,            -- as of sweep_column
  better TEXT NOT NULL,
  compare TEXT NOT NULL CHECK (json_valid(compare)),  -- table.compare as submitted
  tests INTEGER NOT NULL,        -- sweep_growth.planned
  decided INTEGER NOT NULL       -- of them
) STRICT;
CREATE TABLE log_chunk (
  run_id INTEGER NOT NULL REFERENCES run,
  offset INTEGER NOT NULL,       -- in bytes, of the chunk's first
  bytes BLOB NOT NULL,
  UNIQUE (run_id, offset)
) STRICT;
INSERT INTO "log_chunk" VALUES(1,0,X'72756E2020310A');
INSERT INTO "log_chunk" VALUES(2,0,X'72756E2020320A');
INSERT INTO "log_chunk" VALUES(3,0,X'72756E2020330A');
INSERT INTO "log_chunk" VALUES(4,0,X'72756E2020340A');
INSERT INTO "log_chunk" VALUES(5,0,X'72756E2020350A');
INSERT INTO "log_chunk" VALUES(6,0,X'72756E2020360A');
INSERT INTO "log_chunk" VALUES(7,0,X'72756E2020370A');
INSERT INTO "log_chunk" VALUES(8,0,X'72756E2020380A');
INSERT INTO "log_chunk" VALUES(9,0,X'72756E2020390A');
CREATE TABLE measured (          -- what runs took that completed: what trials like theirs will take
  hash TEXT NOT NULL,            -- sweep_row.config_hash, or sweep_row.work_hash
  gpus INTEGER NOT NULL,
  runs INTEGER NOT NULL,         -- how many there were
  mean_ms REAL NOT NULL,         -- of a whole trial, in a slot of its own; each new run counts as a tenth at least
  memory_bytes REAL,             -- the most that one took of its GPU's memory; NULL: not reported
  steps_per_second REAL,         -- of the newest that had its GPU for itself; NULL: not reported
  packing TEXT NOT NULL DEFAULT '', variance_ms2 REAL,  -- why its trials are not put beside others any more, or ''
  PRIMARY KEY (hash, gpus)
) STRICT, WITHOUT ROWID;
CREATE TABLE metric (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO "metric" VALUES(1,'val/top1');
INSERT INTO "metric" VALUES(2,'train/loss');
INSERT INTO "metric" VALUES(3,'time/step');
CREATE TABLE metric_summary (    -- kept up to date with each batch, so that lists never read the points
  run_id INTEGER NOT NULL REFERENCES run,
  metric_id INTEGER NOT NULL REFERENCES metric,
  count INTEGER NOT NULL,        -- of all points; `finite` of those that min, max, sum and best speak of
  finite INTEGER NOT NULL,
  sum REAL NOT NULL,
  min REAL,
  max REAL,
  last REAL,
  last_kind TEXT,
  last_step INTEGER NOT NULL, min_step INTEGER NOT NULL DEFAULT 0, max_step INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, metric_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "metric_summary" VALUES(1,1,2,2,142.375,71.125,71.25,71.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(1,2,2,2,1.66666666666666651863e+00,6.66666666666666629659e-01,1.0,6.66666666666666629659e-01,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(1,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
INSERT INTO "metric_summary" VALUES(2,1,4,4,289.25,72.125,72.5,72.5,NULL,40,10,40);
INSERT INTO "metric_summary" VALUES(2,2,4,4,1.89999999999999968913e+00,3.33333333333333314829e-01,6.66666666666666629659e-01,3.33333333333333314829e-01,NULL,40,40,10);
INSERT INTO "metric_summary" VALUES(2,3,4,4,1.0,0.25,0.25,0.25,NULL,40,10,10);
INSERT INTO "metric_summary" VALUES(3,1,4,4,293.25,73.125,73.5,73.5,NULL,40,10,40);
INSERT INTO "metric_summary" VALUES(3,2,4,2,0.9,0.4,0.5,NULL,'NaN',40,20,10);
INSERT INTO "metric_summary" VALUES(3,3,4,4,1.0,0.25,0.25,0.25,NULL,40,10,10);
INSERT INTO "metric_summary" VALUES(4,1,4,4,297.25,74.125,74.5,74.5,NULL,40,10,40);
INSERT INTO "metric_summary" VALUES(4,2,4,4,1.26904761904761897994e+00,0.25,0.4,0.25,NULL,40,40,10);
INSERT INTO "metric_summary" VALUES(4,3,4,4,1.0,0.25,0.25,0.25,NULL,40,10,10);
INSERT INTO "metric_summary" VALUES(5,1,2,2,150.375,75.125,75.25,75.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(5,2,2,2,6.19047619047619068766e-01,2.85714285714285698425e-01,3.33333333333333314829e-01,2.85714285714285698425e-01,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(5,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
INSERT INTO "metric_summary" VALUES(6,1,2,2,152.375,76.125,76.25,76.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(6,2,2,2,5.35714285714285698425e-01,0.25,2.85714285714285698425e-01,0.25,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(6,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
INSERT INTO "metric_summary" VALUES(7,1,2,2,154.375,77.125,77.25,77.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(7,2,2,2,4.72222222222222209886e-01,2.22222222222222209886e-01,0.25,2.22222222222222209886e-01,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(7,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
INSERT INTO "metric_summary" VALUES(8,1,2,2,156.375,78.125,78.25,78.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(8,2,2,2,4.22222222222222220988e-01,0.2,2.22222222222222209886e-01,0.2,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(8,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
INSERT INTO "metric_summary" VALUES(9,1,2,2,158.375,79.125,79.25,79.25,NULL,20,10,20);
INSERT INTO "metric_summary" VALUES(9,2,2,2,3.8181818181818183433e-01,1.81818181818181823228e-01,0.2,1.81818181818181823228e-01,NULL,20,20,10);
INSERT INTO "metric_summary" VALUES(9,3,2,2,0.5,0.25,0.25,0.25,NULL,20,10,10);
CREATE TABLE model_count (
  model_hash TEXT NOT NULL,
  version INTEGER NOT NULL,      -- of the counter
  mode TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (model_hash, version, mode)
) STRICT, WITHOUT ROWID;
INSERT INTO "model_count" VALUES('ma',1,'params.weights',97000000.0);
INSERT INTO "model_count" VALUES('mb',1,'params.weights',98000000.0);
INSERT INTO "model_count" VALUES('mc',1,'params.weights',99000000.0);
CREATE TABLE point (
  run_id INTEGER NOT NULL REFERENCES run,
  metric_id INTEGER NOT NULL REFERENCES metric,
  step INTEGER NOT NULL,
  value REAL,                    -- NULL where it is not finite: then `kind` says 'NaN', 'Infinity' or '-Infinity'
  kind TEXT,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, metric_id, step)
) STRICT, WITHOUT ROWID;
INSERT INTO "point" VALUES(1,1,10,71.125,NULL,1750003600010);
INSERT INTO "point" VALUES(1,1,20,71.25,NULL,1750003600020);
INSERT INTO "point" VALUES(1,2,10,1.0,NULL,1750003600010);
INSERT INTO "point" VALUES(1,2,20,6.66666666666666629659e-01,NULL,1750003600020);
INSERT INTO "point" VALUES(1,3,10,0.25,NULL,1750003600010);
INSERT INTO "point" VALUES(1,3,20,0.25,NULL,1750003600020);
INSERT INTO "point" VALUES(2,1,10,72.125,NULL,1750007200010);
INSERT INTO "point" VALUES(2,1,20,72.25,NULL,1750007200020);
INSERT INTO "point" VALUES(2,1,30,72.375,NULL,1750007200030);
INSERT INTO "point" VALUES(2,1,40,72.5,NULL,1750007200040);
INSERT INTO "point" VALUES(2,2,10,6.66666666666666629659e-01,NULL,1750007200010);
INSERT INTO "point" VALUES(2,2,20,0.5,NULL,1750007200020);
INSERT INTO "point" VALUES(2,2,30,0.4,NULL,1750007200030);
INSERT INTO "point" VALUES(2,2,40,3.33333333333333314829e-01,NULL,1750007200040);
INSERT INTO "point" VALUES(2,3,10,0.25,NULL,1750007200010);
INSERT INTO "point" VALUES(2,3,20,0.25,NULL,1750007200020);
INSERT INTO "point" VALUES(2,3,30,0.25,NULL,1750007200030);
INSERT INTO "point" VALUES(2,3,40,0.25,NULL,1750007200040);
INSERT INTO "point" VALUES(3,1,10,73.125,NULL,1750010800010);
INSERT INTO "point" VALUES(3,1,20,73.25,NULL,1750010800020);
INSERT INTO "point" VALUES(3,1,30,73.375,NULL,1750010800030);
INSERT INTO "point" VALUES(3,1,40,73.5,NULL,1750010800040);
INSERT INTO "point" VALUES(3,2,10,0.5,NULL,1750010800010);
INSERT INTO "point" VALUES(3,2,20,0.4,NULL,1750010800020);
INSERT INTO "point" VALUES(3,2,30,NULL,'Infinity',1750010800030);
INSERT INTO "point" VALUES(3,2,40,NULL,'NaN',1750010800040);
INSERT INTO "point" VALUES(3,3,10,0.25,NULL,1750010800010);
INSERT INTO "point" VALUES(3,3,20,0.25,NULL,1750010800020);
INSERT INTO "point" VALUES(3,3,30,0.25,NULL,1750010800030);
INSERT INTO "point" VALUES(3,3,40,0.25,NULL,1750010800040);
INSERT INTO "point" VALUES(4,1,10,74.125,NULL,1750014400010);
INSERT INTO "point" VALUES(4,1,20,74.25,NULL,1750014400020);
INSERT INTO "point" VALUES(4,1,30,74.375,NULL,1750014400030);
INSERT INTO "point" VALUES(4,1,40,74.5,NULL,1750014400040);
INSERT INTO "point" VALUES(4,2,10,0.4,NULL,1750014400010);
INSERT INTO "point" VALUES(4,2,20,3.33333333333333314829e-01,NULL,1750014400020);
INSERT INTO "point" VALUES(4,2,30,2.85714285714285698425e-01,NULL,1750014400030);
INSERT INTO "point" VALUES(4,2,40,0.25,NULL,1750014400040);
INSERT INTO "point" VALUES(4,3,10,0.25,NULL,1750014400010);
INSERT INTO "point" VALUES(4,3,20,0.25,NULL,1750014400020);
INSERT INTO "point" VALUES(4,3,30,0.25,NULL,1750014400030);
INSERT INTO "point" VALUES(4,3,40,0.25,NULL,1750014400040);
INSERT INTO "point" VALUES(5,1,10,75.125,NULL,1750018000010);
INSERT INTO "point" VALUES(5,1,20,75.25,NULL,1750018000020);
INSERT INTO "point" VALUES(5,2,10,3.33333333333333314829e-01,NULL,1750018000010);
INSERT INTO "point" VALUES(5,2,20,2.85714285714285698425e-01,NULL,1750018000020);
INSERT INTO "point" VALUES(5,3,10,0.25,NULL,1750018000010);
INSERT INTO "point" VALUES(5,3,20,0.25,NULL,1750018000020);
INSERT INTO "point" VALUES(6,1,10,76.125,NULL,1750021600010);
INSERT INTO "point" VALUES(6,1,20,76.25,NULL,1750021600020);
INSERT INTO "point" VALUES(6,2,10,2.85714285714285698425e-01,NULL,1750021600010);
INSERT INTO "point" VALUES(6,2,20,0.25,NULL,1750021600020);
INSERT INTO "point" VALUES(6,3,10,0.25,NULL,1750021600010);
INSERT INTO "point" VALUES(6,3,20,0.25,NULL,1750021600020);
INSERT INTO "point" VALUES(7,1,10,77.125,NULL,1750025200010);
INSERT INTO "point" VALUES(7,1,20,77.25,NULL,1750025200020);
INSERT INTO "point" VALUES(7,2,10,0.25,NULL,1750025200010);
INSERT INTO "point" VALUES(7,2,20,2.22222222222222209886e-01,NULL,1750025200020);
INSERT INTO "point" VALUES(7,3,10,0.25,NULL,1750025200010);
INSERT INTO "point" VALUES(7,3,20,0.25,NULL,1750025200020);
INSERT INTO "point" VALUES(8,1,10,78.125,NULL,1750028800010);
INSERT INTO "point" VALUES(8,1,20,78.25,NULL,1750028800020);
INSERT INTO "point" VALUES(8,2,10,2.22222222222222209886e-01,NULL,1750028800010);
INSERT INTO "point" VALUES(8,2,20,0.2,NULL,1750028800020);
INSERT INTO "point" VALUES(8,3,10,0.25,NULL,1750028800010);
INSERT INTO "point" VALUES(8,3,20,0.25,NULL,1750028800020);
INSERT INTO "point" VALUES(9,1,10,79.125,NULL,1750032400010);
INSERT INTO "point" VALUES(9,1,20,79.25,NULL,1750032400020);
INSERT INTO "point" VALUES(9,2,10,0.2,NULL,1750032400010);
INSERT INTO "point" VALUES(9,2,20,1.81818181818181823228e-01,NULL,1750032400020);
INSERT INTO "point" VALUES(9,3,10,0.25,NULL,1750032400010);
INSERT INTO "point" VALUES(9,3,20,0.25,NULL,1750032400020);
CREATE TABLE predicted (          -- what a plan predicted of submitted rows of which no run had completed, but what follows from a stated rate
  hash TEXT NOT NULL,             -- sweep_row.config_hash
  gpus INTEGER NOT NULL,
  seconds REAL NOT NULL,          -- of a whole trial, in a slot of its own
  PRIMARY KEY (hash, gpus)
) STRICT, WITHOUT ROWID;
CREATE TABLE probe (             -- the newest of each run and probe
  run_id INTEGER NOT NULL REFERENCES run,
  name TEXT NOT NULL,            -- its key: the name, and settings that are not the usual ones: attention(images=8)
  step INTEGER NOT NULL,         -- after which the weights were that it looked at
  time_ms INTEGER NOT NULL,
  missing TEXT NOT NULL,         -- why it found nothing: the model has nothing for it to look at; or ''
  found TEXT NOT NULL CHECK (json_valid(found)),  -- {"probe", "settings", "values", "arrays", "pictures", "notes"}
  UNIQUE (run_id, name)
) STRICT;
CREATE TABLE probe_picture (
  run_id INTEGER NOT NULL REFERENCES run,
  probe TEXT NOT NULL,           -- probe.name
  name TEXT NOT NULL,
  width INTEGER NOT NULL,
  height INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  png BLOB NOT NULL,
  UNIQUE (run_id, probe, name)
) STRICT;
CREATE TABLE provenance_text (   -- diffs and lists of packages, each once, however many sweeps have it
  sha256 TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE resource_sample (
  run_id INTEGER NOT NULL REFERENCES run,
  at_ms INTEGER NOT NULL,        -- since the start of its program
  over_ms INTEGER NOT NULL,      -- that means are over
  cpu_cores REAL,                -- in use, a mean
  memory_bytes INTEGER,          -- resident, the sum over its processes
  read_bytes_per_s REAL,         -- from disks, a mean
  written_bytes_per_s REAL,
  gpu REAL,                      -- share of the time in which its GPUs computed, a mean
  gpu_memory_bytes INTEGER,
  free_bytes INTEGER,            -- on the disk of its folder
  data_wait_ms INTEGER,          -- for which its trainer waited for data, of so much
  data_of_ms INTEGER,
  PRIMARY KEY (run_id, at_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE resource_use (      -- of all samples of a run, so that lists never read them
  run_id INTEGER PRIMARY KEY REFERENCES run,
  samples INTEGER NOT NULL,
  left_out INTEGER NOT NULL,     -- beyond those that are kept
  last_ms INTEGER NOT NULL,      -- at_ms of the newest
  over_ms INTEGER NOT NULL,      -- that they are of; beside each sum below the time that it is over
  cpu_ms REAL NOT NULL,
  cpu_over_ms INTEGER NOT NULL,
  peak_memory_bytes INTEGER,
  read_bytes REAL NOT NULL,
  written_bytes REAL NOT NULL,
  disk_over_ms INTEGER NOT NULL,
  gpu_ms REAL NOT NULL,
  gpu_over_ms INTEGER NOT NULL,
  peak_gpu_memory_bytes INTEGER,
  least_free_bytes INTEGER,
  data_wait_ms INTEGER NOT NULL,
  data_of_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trial,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('leased', 'running', 'completed', 'failed', 'stopped', 'lost')),
  worker TEXT NOT NULL,
  host TEXT NOT NULL,
  directory TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  environment_json TEXT NOT NULL DEFAULT '',
  leased_ms INTEGER NOT NULL,
  started_ms INTEGER,
  ended_ms INTEGER,
  lease_expires_ms INTEGER NOT NULL,
  step INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL DEFAULT 0,
  rate_step INTEGER,             -- first step reported by this run itself and its time: the rate is measured from there
  rate_ms INTEGER,
  steps_per_second REAL NOT NULL DEFAULT 0,
  resumed_from_step INTEGER,
  resumed_from_run INTEGER REFERENCES run,
  bit_exact INTEGER NOT NULL DEFAULT 1,
  exit_code INTEGER,
  signal INTEGER,
  last_seq INTEGER NOT NULL DEFAULT 0,   -- newest batch stored
  log_bytes INTEGER NOT NULL DEFAULT 0, stop_reason TEXT NOT NULL DEFAULT '', token TEXT NOT NULL DEFAULT '', silent INTEGER NOT NULL DEFAULT 0, alone INTEGER NOT NULL DEFAULT 0, refused_lines INTEGER NOT NULL DEFAULT 0, refused_example TEXT NOT NULL DEFAULT '', repeated_points INTEGER NOT NULL DEFAULT 0, curves INTEGER NOT NULL DEFAULT 0, slots TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(slots)), took_ms INTEGER, packed_with INTEGER NOT NULL DEFAULT 0, failure TEXT NOT NULL DEFAULT ''  -- of a failed or lost one: as which it counts
  CHECK (failure IN ('', 'infrastructure', 'resources', 'trial', 'data')), failure_rule TEXT NOT NULL DEFAULT '', rendezvous TEXT NOT NULL DEFAULT '',
  UNIQUE (trial_id, attempt)
) STRICT;
INSERT INTO "run" VALUES(1,1,1,'lost','gpu-01','gpu-01','/runs/1/1','because of lost','{"device":"cpu"}',1750003600000,1750003600001,1750003601000,10000,20,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token1',0,0,0,'',0,-6922559923543669739,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(2,1,2,'completed','gpu-01','gpu-01','/runs/1/2','','{"device":"cpu"}',1750007200000,1750007200001,1750007201000,10000,40,40,NULL,NULL,0.0,20,1,1,NULL,NULL,3,7,'','token2',0,0,0,'',0,-5401625377310230641,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(3,2,1,'completed','gpu-01','gpu-01','/runs/2/1','','{"device":"cpu"}',1750010800000,1750010800001,1750010801000,10000,40,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token3',0,0,0,'',0,-2007918635382895416,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(4,3,1,'completed','gpu-01','gpu-01','/runs/3/1','','{"device":"cpu"}',1750014400000,1750014400001,1750014401000,10000,40,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token4',0,0,0,'',0,-3435533935910534464,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(5,4,1,'failed','gpu-01','gpu-01','/runs/4/1','because of failed','{"device":"cpu"}',1750018000000,1750018000001,1750018001000,10000,20,40,NULL,NULL,0.0,NULL,NULL,1,1,NULL,3,7,'','token5',0,0,0,'',0,-8537828561407176031,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(6,4,2,'failed','gpu-01','gpu-01','/runs/4/2','because of failed','{"device":"cpu"}',1750021600000,1750021600001,1750021601000,10000,20,40,NULL,NULL,0.0,20,NULL,1,1,NULL,3,7,'','token6',0,0,0,'',0,-8288775664158432063,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(7,6,1,'running','gpu-01','gpu-01','/runs/6/1','','{"device":"cpu"}',1750025200000,1750025200001,NULL,10000,20,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token7',0,0,0,'',0,-1405332716827296641,'[0]',NULL,0,'','','');
INSERT INTO "run" VALUES(8,7,1,'stopped','gpu-01','gpu-01','/runs/7/1','because of stopped','{"device":"cpu"}',1750028800000,1750028800001,1750028801000,10000,20,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token8',0,0,0,'',0,-7058210183702538908,'[]',NULL,0,'','','');
INSERT INTO "run" VALUES(9,8,1,'lost','gpu-01','gpu-01','/runs/8/1','because of lost','{"device":"cpu"}',1750032400000,1750032400001,1750032401000,10000,20,40,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL,3,7,'','token9',0,0,0,'',0,-610903249829060024,'[]',NULL,0,'','','');
CREATE TABLE run_part (          -- the workers that take part in a run beside its own, which has the lease
  run_id INTEGER NOT NULL REFERENCES run,
  node INTEGER NOT NULL CHECK (node > 0),
  worker TEXT NOT NULL,
  host TEXT NOT NULL,
  slots TEXT NOT NULL CHECK (json_valid(slots)),  -- of that worker, as of run
  PRIMARY KEY (run_id, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_source (        -- which weights a run was given
  run_id INTEGER NOT NULL REFERENCES run,
  name TEXT NOT NULL,
  source_run INTEGER NOT NULL,   -- that wrote them, and after which step; it may have been removed
  step INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE shape (             -- what trials need of a worker
  id INTEGER PRIMARY KEY,
  demand TEXT NOT NULL UNIQUE CHECK (json_valid(demand)),  -- command, data, gpus, result_version, weights: name -> SHA-256 or ''
  waiting TEXT NOT NULL DEFAULT ''                         -- why its queued trials wait, those that could be run now
) STRICT;
INSERT INTO "shape" VALUES(1,'{"command":false,"data":"cifar10","gpus":1,"result_version":1,"weights":{}}','no worker has the data cifar10');
CREATE TABLE store (             -- one line
  id TEXT NOT NULL               -- 32 random hexadecimal digits; a copied file keeps it
, due_as_of INTEGER NOT NULL DEFAULT 0, last_sweep INTEGER NOT NULL DEFAULT 0, last_trial INTEGER NOT NULL DEFAULT 0, last_run INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "store" VALUES('0123456789abcdef0123456789abcdef',0,0,0,0);
CREATE TABLE sweep (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  file TEXT NOT NULL,            -- path of the sweep file as submitted, and its text
  text TEXT NOT NULL,
  canonical TEXT NOT NULL,
  canonical_hash TEXT NOT NULL,
  baseline TEXT NOT NULL,
  paper_heading TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'cancelled')),
  state_ms INTEGER NOT NULL,     -- when the state was set
  priority INTEGER NOT NULL,
  created_ms INTEGER NOT NULL
, owner TEXT NOT NULL DEFAULT '', weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0), max_running INTEGER CHECK (max_running > 0), preempts INTEGER NOT NULL DEFAULT 0 CHECK (preempts IN (0, 1)), breaker INTEGER NOT NULL DEFAULT 0 CHECK (breaker IN (0, 1)), canary INTEGER NOT NULL DEFAULT 0 CHECK (canary IN (0, 1)), failures INTEGER NOT NULL DEFAULT 0, failed_on TEXT NOT NULL DEFAULT '', open_levels INTEGER NOT NULL DEFAULT 0, held TEXT NOT NULL DEFAULT '', removing INTEGER, revision INTEGER NOT NULL DEFAULT 1, seeds_rule TEXT NOT NULL DEFAULT '' CHECK (seeds_rule = '' OR json_valid(seeds_rule)), gpu_ms_limit INTEGER, until_ms INTEGER, spent TEXT NOT NULL DEFAULT '', probes TEXT NOT NULL DEFAULT '' CHECK (probes = '' OR json_valid(probes)), tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)), notes TEXT NOT NULL DEFAULT '', pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)), archived_ms INTEGER) STRICT;
INSERT INTO "sweep" VALUES(1,'first','/sweeps/first.yaml','name: first
','{"name": "first"}','c-first','a','paper','active',1750000000000,1,1750000000001,'ada',1.0,NULL,0,0,0,0,'',0,'',NULL,1,'',NULL,NULL,'','','[]','',0,NULL);
INSERT INTO "sweep" VALUES(2,'second','/sweeps/second.yaml','name: second
','{"name": "second"}','c-second','a','paper','paused',1750000000000,2,1750000000002,'ada',1.0,NULL,0,0,0,0,'',0,'',NULL,1,'',NULL,NULL,'','','[]','',0,NULL);
INSERT INTO "sweep" VALUES(3,'gone','/sweeps/gone.yaml','name: gone
','{"name": "gone"}','c-gone','a','paper','cancelled',1750000000000,3,1750000000003,'ada',1.0,NULL,0,0,0,0,'',0,'',NULL,1,'',NULL,NULL,'','','[]','',0,NULL);
CREATE TABLE "sweep_column" (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  heading TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('metric', 'count', 'setting', 'expression', 'printed')),
  source TEXT NOT NULL,          -- metric, count mode, dotted setting, or the expression as written; 'true' of one that is printed alone
  take TEXT NOT NULL,
  unit TEXT NOT NULL,
  better TEXT NOT NULL,
  digits INTEGER NOT NULL,       -- -1: as many as the values need
  unit_fits INTEGER NOT NULL DEFAULT 0, cut INTEGER NOT NULL DEFAULT 0,  -- 1: `unit`, or a smaller one where all values are small
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_column" VALUES(1,0,'acc','acc','metric','val/top1','last','percent','higher',2,0,0);
INSERT INTO "sweep_column" VALUES(1,1,'best','best','metric','train/loss','best','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(1,2,'loss','loss','metric','train/loss','last','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(1,3,'params','params','count','params.weights','last','million','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(1,4,'share','share','setting','model.share','last','','none',2,0,0);
INSERT INTO "sweep_column" VALUES(2,0,'acc','acc','metric','val/top1','last','percent','higher',2,0,0);
INSERT INTO "sweep_column" VALUES(2,1,'best','best','metric','train/loss','best','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(2,2,'loss','loss','metric','train/loss','last','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(2,3,'params','params','count','params.weights','last','million','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(2,4,'share','share','setting','model.share','last','','none',2,0,0);
INSERT INTO "sweep_column" VALUES(3,0,'acc','acc','metric','val/top1','last','percent','higher',2,0,0);
INSERT INTO "sweep_column" VALUES(3,1,'best','best','metric','train/loss','best','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(3,2,'loss','loss','metric','train/loss','last','','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(3,3,'params','params','count','params.weights','last','million','lower',2,0,0);
INSERT INTO "sweep_column" VALUES(3,4,'share','share','setting','model.share','last','','none',2,0,0);
CREATE TABLE sweep_count (       -- claims of a sweep by the state of their trials; kept by the triggers below
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  queued INTEGER NOT NULL DEFAULT 0,
  leased INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,   -- and those whose claim was withdrawn before they ended
  unfilled INTEGER NOT NULL DEFAULT 0,    -- completed, without a metric that a column takes
  finished_ms INTEGER NOT NULL DEFAULT 0  -- when the last of them ended
, gpu_ms INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "sweep_count" VALUES(1,1,0,1,3,1,0,0,0,1750014400000,0);
INSERT INTO "sweep_count" VALUES(2,0,0,0,2,0,0,0,0,1750007200000,0);
INSERT INTO "sweep_count" VALUES(3,0,0,0,0,0,0,2,0,0,0);
CREATE TABLE sweep_former (      -- trials that were a sweep's before it was extended: their results stay, its table shows others
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  revision INTEGER NOT NULL,     -- the one that has others in their place
  row TEXT NOT NULL,             -- sweep_row.id, as it was
  label TEXT NOT NULL,
  seed INTEGER NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trial,
  version TEXT,                  -- of the command, where that is all that changed: the table shows them, marked, until the new ones are there
  why TEXT NOT NULL,             -- what of its row changed
  PRIMARY KEY (sweep_id, row, seed, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_growth (      -- of a sweep with a seeds_rule: why each row has the seeds that it has
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,             -- sweep_row.id
  seeds INTEGER NOT NULL,        -- that it has
  open INTEGER NOT NULL CHECK (open IN (0, 1)),  -- 0: it gets no more
  why TEXT NOT NULL,
  time_ms INTEGER NOT NULL, position INTEGER NOT NULL DEFAULT -1, baseline TEXT NOT NULL DEFAULT '', twin TEXT NOT NULL DEFAULT '', planned INTEGER NOT NULL DEFAULT 0 CHECK (planned IN (0, 1)), p REAL, looked INTEGER NOT NULL DEFAULT 0, decided INTEGER NOT NULL DEFAULT 0 CHECK (decided IN (0, 1)),      -- when that was decided
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_level (       -- of a sweep with a breaker: what its factors' levels came to, those that three trials or more have
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  factor TEXT NOT NULL,          -- a key of sweep_row.set_json; '': the row itself
  level TEXT NOT NULL,           -- its value there; the row's id
  trials INTEGER NOT NULL,       -- that it had when the sweep was submitted
  completed INTEGER NOT NULL DEFAULT 0 CHECK (completed IN (0, 1)),  -- a trial of it has
  failures INTEGER NOT NULL DEFAULT 0,   -- as of the sweep
  failed_on TEXT NOT NULL DEFAULT '',
  held TEXT NOT NULL DEFAULT '',         -- why its trials are held, or ''
  PRIMARY KEY (sweep_id, factor, level)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_paper (       -- the papers' values, as printed
  sweep_id INTEGER NOT NULL,
  row INTEGER NOT NULL,
  name TEXT NOT NULL,            -- sweep_column.name
  printed TEXT NOT NULL, mark TEXT NOT NULL DEFAULT '' CHECK (mark IN ('', 'bold', 'underline', 'doubtful')), why TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (sweep_id, row, name),
  FOREIGN KEY (sweep_id, row) REFERENCES sweep_row (sweep_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_paper" VALUES(1,0,'acc','70.5 ± 0.1','','');
INSERT INTO "sweep_paper" VALUES(1,1,'acc','71.5 ± 0.1','','');
INSERT INTO "sweep_paper" VALUES(1,2,'acc','72.5 ± 0.1','','');
INSERT INTO "sweep_paper" VALUES(2,0,'acc','70.5 ± 0.1','','');
INSERT INTO "sweep_paper" VALUES(3,0,'acc','70.5 ± 0.1','','');
CREATE TABLE sweep_provenance (  -- none of sweeps that are older, or whose submitter said nothing
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,     -- 0: as it was submitted first; then as it grew
  time_ms INTEGER NOT NULL,
  facts_json TEXT NOT NULL CHECK (json_valid(facts_json)),  -- user, host, folder, commit, …: ablate.v1.Provenance but for the two below
  diff TEXT REFERENCES provenance_text,      -- what of the folder was not committed; NULL: nothing, or it is not known
  packages TEXT REFERENCES provenance_text,  -- of the command's Python
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_revision (    -- the contents that a sweep has had, once it was extended; the newest is `sweep`'s own
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  revision INTEGER NOT NULL,     -- 1: as it was submitted
  time_ms INTEGER NOT NULL,
  author TEXT NOT NULL,          -- who submitted or extended it, as they say
  file TEXT NOT NULL,            -- as of sweep
  text TEXT NOT NULL,
  canonical TEXT NOT NULL,
  changes TEXT NOT NULL CHECK (json_valid(changes)),  -- JSON list: against the revision before, a line each
  new_trials INTEGER NOT NULL,   -- trials that it queued
  former_trials INTEGER NOT NULL,  -- sweep_former that it made
  PRIMARY KEY (sweep_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_row (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  id TEXT NOT NULL,
  label TEXT NOT NULL,
  set_json TEXT NOT NULL CHECK (json_valid(set_json)),
  config_hash TEXT NOT NULL,
  model_hash TEXT NOT NULL, released INTEGER NOT NULL DEFAULT 0 CHECK (released IN (0, 1)), work_hash TEXT NOT NULL DEFAULT '', heading TEXT NOT NULL DEFAULT '', baseline TEXT NOT NULL DEFAULT '', not_trained TEXT NOT NULL DEFAULT ''   -- it has no trials: why
  CHECK (not_trained IN ('', 'cited', 'task', 'model', 'scale')), not_trained_why TEXT NOT NULL DEFAULT '', other_sweep TEXT NOT NULL DEFAULT '',      -- SHA-256 of the canonical model document: model_count.model_hash; '' for a command
  PRIMARY KEY (sweep_id, position),
  UNIQUE (sweep_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_row" VALUES(1,0,'a','Baseline','{"model.share": "QKV"}','ha','ma',0,'','','','','','');
INSERT INTO "sweep_row" VALUES(1,1,'b','Größer & "anders"','{"model.share": "QQV"}','hb','mb',0,'','','','','','');
INSERT INTO "sweep_row" VALUES(1,2,'c','','{"model.share": "QQQ"}','hc','mc',0,'','','','','','');
INSERT INTO "sweep_row" VALUES(2,0,'a','Baseline','{"model.share": "QKV"}','ha','ma',0,'','','','','','');
INSERT INTO "sweep_row" VALUES(3,0,'a','Baseline','{"model.share": "QKV"}','ha','ma',0,'','','','','','');
CREATE TABLE sweep_seed (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_seed" VALUES(1,0,0);
INSERT INTO "sweep_seed" VALUES(1,1,1);
INSERT INTO "sweep_seed" VALUES(2,0,0);
INSERT INTO "sweep_seed" VALUES(2,1,1);
INSERT INTO "sweep_seed" VALUES(3,0,0);
INSERT INTO "sweep_seed" VALUES(3,1,1);
CREATE TABLE sweep_trial (       -- the claims of sweeps on trials
  sweep_id INTEGER NOT NULL,
  row INTEGER NOT NULL,
  seed_index INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trial,
  withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)), unfilled INTEGER NOT NULL DEFAULT 0, turn REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (sweep_id, row, seed_index),
  FOREIGN KEY (sweep_id, row) REFERENCES sweep_row (sweep_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_trial" VALUES(1,0,0,0,1,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(1,0,1,1,2,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(1,1,0,0,3,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(1,1,1,1,4,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(1,2,0,0,5,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(1,2,1,1,6,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(2,0,0,0,1,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(2,0,1,1,2,0,0,0.0);
INSERT INTO "sweep_trial" VALUES(3,0,0,0,7,1,0,0.0);
INSERT INTO "sweep_trial" VALUES(3,0,1,1,8,1,0,0.0);
CREATE TABLE sweep_tuning (      -- of a sweep with `tune` or `search`
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  by_id INTEGER NOT NULL UNIQUE REFERENCES sweep,     -- the sweep of its tuning trials: a row for each point of a row, and rung
  tune TEXT NOT NULL CHECK (json_valid(tune)),        -- the section as it was read: ranges, method, budget, metric, better, seeds, held_out
  rows INTEGER NOT NULL,         -- that are tuned
  open INTEGER NOT NULL,         -- of them, those of which nothing was decided yet
  failed INTEGER NOT NULL        -- of them, those that cannot be tuned: none of their points has a value
) STRICT;
CREATE TABLE transition (
  id INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  trial_id INTEGER NOT NULL,
  was TEXT NOT NULL,
  state TEXT NOT NULL,
  run_id INTEGER,                -- the trial's newest run then
  reason TEXT NOT NULL           -- of that run's end, or of the trial's
) STRICT;
INSERT INTO "transition" VALUES(1,1750000000001,1,'queued','completed',2,'');
INSERT INTO "transition" VALUES(2,1750000000002,2,'queued','completed',3,'');
INSERT INTO "transition" VALUES(3,1750000000003,3,'queued','completed',4,'');
INSERT INTO "transition" VALUES(4,1750000000004,4,'queued','failed',6,'it exited with 1');
INSERT INTO "transition" VALUES(5,1750000000005,6,'queued','running',7,'');
INSERT INTO "transition" VALUES(6,1750000000006,7,'queued','cancelled',8,'');
INSERT INTO "transition" VALUES(7,1750000000007,8,'queued','held',9,'');
CREATE TABLE "trial" (
  id INTEGER PRIMARY KEY,
  config_hash TEXT NOT NULL,     -- identity, with the two below
  result_version INTEGER NOT NULL,
  data_fingerprint TEXT NOT NULL, -- '' until a worker has reported it
  reusable INTEGER NOT NULL CHECK (reusable IN (0, 1)),
  config TEXT NOT NULL,
  seed INTEGER NOT NULL,
  data TEXT NOT NULL,
  command_json TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  max_retries INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'running', 'completed', 'failed', 'held', 'cancelled')),
  failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',     -- of the last failure
  waiting TEXT NOT NULL DEFAULT '',    -- why it is still queued
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  finished_ms INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,  -- of the newest run
  run_id INTEGER REFERENCES run,       -- the newest run
  losses INTEGER NOT NULL DEFAULT 0,   -- runs lost one after the other, none further than those before: the back-off
  deaths INTEGER NOT NULL DEFAULT 0    -- of them, those that were all that their worker had when it died, or left it in trouble
, due_version INTEGER NOT NULL DEFAULT 0, replaced_by INTEGER REFERENCES trial, shape_id INTEGER REFERENCES shape, time_limit_s INTEGER NOT NULL DEFAULT 0, stall_limit_s INTEGER NOT NULL DEFAULT 0, where_json TEXT NOT NULL DEFAULT '' CHECK (where_json = '' OR json_valid(where_json)), pack TEXT NOT NULL DEFAULT '', retry_on TEXT NOT NULL DEFAULT '', retried TEXT NOT NULL DEFAULT '', log_limit_bytes INTEGER NOT NULL DEFAULT 0, nan_fails INTEGER NOT NULL DEFAULT 0, awaits INTEGER NOT NULL DEFAULT 0, held_for_source INTEGER NOT NULL DEFAULT 0 CHECK (held_for_source IN (0, 1)), continues INTEGER REFERENCES trial, split TEXT NOT NULL DEFAULT '' CHECK (split = '' OR json_valid(split))) STRICT;
INSERT INTO "trial" VALUES(1,'t1',1,'f1',1,'{"seed": 1, "recipe": {"epochs": 1}}',0,'cifar10','',1,1,'completed',0,'','',0,1750003600000,2,2,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(2,'t2',1,'f1',1,'{"seed": 0, "recipe": {"epochs": 1}}',1,'cifar10','',1,1,'completed',0,'','',0,1750007200000,1,3,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(3,'t3',1,'f1',1,'{"seed": 1, "recipe": {"epochs": 1}}',0,'cifar10','',1,1,'completed',0,'','',0,1750010800000,1,4,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(4,'t4',1,'f1',1,'{"seed": 0, "recipe": {"epochs": 1}}',1,'cifar10','',1,1,'failed',0,'it exited with 1','',0,1750014400000,2,6,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(5,'t5',1,'',1,'{"seed": 1, "recipe": {"epochs": 1}}',0,'cifar10','',1,1,'queued',0,'','',0,NULL,0,NULL,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(6,'t6',1,'f1',1,'{"seed": 0, "recipe": {"epochs": 1}}',1,'cifar10','',1,1,'running',0,'','',0,NULL,1,7,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(7,'t7',1,'f1',1,'{"seed": 1, "recipe": {"epochs": 1}}',0,'cifar10','',1,1,'cancelled',0,'','',0,1750025200000,1,8,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
INSERT INTO "trial" VALUES(8,'t8',1,'f1',1,'{"seed": 0, "recipe": {"epochs": 1}}',1,'cifar10','',1,1,'held',0,'','',0,1750028800000,1,9,0,0,1,NULL,1,0,0,'','','','',0,0,0,0,NULL,'');
CREATE TABLE trial_source (      -- whose weights a trial takes, and whose those take in turn
  trial_id INTEGER NOT NULL REFERENCES trial,
  source_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,            -- of the weights in its recipe; '': it is a source of one of its sources
  take TEXT NOT NULL CHECK (take IN ('best', 'last', '')),
  PRIMARY KEY (trial_id, source_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE trial_weights (     -- the weights that a trial's recipe names
  trial_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,          -- of the file that the recipe wants; '' where the name alone stands for it
  PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "trial_weights" VALUES(8,'deit','');
CREATE TABLE tuning_choice (     -- what a row is trained at: once it is made it stays, whatever becomes of the trials
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,
  point INTEGER,                 -- NULL: none of its points has a value, so that it is not trained
  point_values TEXT NOT NULL CHECK (json_valid(point_values)),
  value REAL,                    -- mean over the tuning's seeds
  means TEXT NOT NULL CHECK (json_valid(means)),      -- of each point of the last rung by then: [[point, mean or null], …]
  completed INTEGER NOT NULL,    -- points with a value of every seed, of all rungs
  budget INTEGER NOT NULL,       -- points that there were
  why TEXT NOT NULL,             -- for people
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE tuning_point (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,             -- sweep_row.id
  point INTEGER NOT NULL,        -- the same values in every row
  rung INTEGER NOT NULL,         -- of successive halving; otherwise 0
  tuning_row TEXT NOT NULL,      -- sweep_row.id in the sweep of the tuning trials
  point_values TEXT NOT NULL CHECK (json_valid(point_values)),  -- {"recipe.lr": "0.001"}
  rung_value TEXT NOT NULL,      -- epochs of this rung, or ''
  tried TEXT NOT NULL CHECK (json_valid(tried)),      -- what its trials train: without a seed
  tried_version INTEGER NOT NULL,                     -- result version of that
  config TEXT NOT NULL CHECK (json_valid(config)),    -- what the row becomes where this is the best: without a seed
  config_hash TEXT NOT NULL,
  work_hash TEXT NOT NULL,
  result_version INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, row, point, rung)
) STRICT, WITHOUT ROWID;
CREATE TABLE weights_pin (       -- the first digest reported for a name that stands alone; another is refused
  name TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,
  run_id INTEGER NOT NULL REFERENCES run
) STRICT, WITHOUT ROWID;
INSERT INTO "weights_pin" VALUES('deit','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd',9);
CREATE TABLE worker (
  name TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  instance TEXT NOT NULL,
  version TEXT NOT NULL,
  slots_json TEXT NOT NULL,
  data_json TEXT NOT NULL,
  result_version INTEGER NOT NULL,
  allows_commands INTEGER NOT NULL,
  connected INTEGER NOT NULL,
  last_heartbeat_ms INTEGER NOT NULL
, weights_json TEXT NOT NULL DEFAULT '[]', trouble TEXT NOT NULL DEFAULT '', drained TEXT, labels_json TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(labels_json)), quarantine TEXT, quarantine_until_ms INTEGER NOT NULL DEFAULT 0, quarantine_back_off_ms INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "worker" VALUES('gpu-01','gpu-01','i','0.1','[{"index": 0, "kind": "cpu", "name": "cpu"}]','["cifar10"]',1,1,0,1750000000000,'[]','',NULL,'{}',NULL,0,0);
CREATE INDEX sweep_trial_trial ON sweep_trial (trial_id);
CREATE INDEX run_under_way ON run (worker, lease_expires_ms) WHERE state IN ('leased', 'running');
CREATE VIEW metric_point AS
SELECT s.name AS sweep, r.id AS row, st.seed AS seed, run.id AS run, run.attempt AS attempt, run.id = t.run_id AS newest,
       m.name AS metric, p.step AS step, p.value AS value, p.kind AS kind, p.time_ms AS time_ms
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
JOIN run ON run.trial_id = t.id
JOIN point p ON p.run_id = run.id
JOIN metric m ON m.id = p.metric_id;
CREATE UNIQUE INDEX trial_identity ON trial (config_hash, result_version, data_fingerprint) WHERE reusable = 1;
CREATE INDEX run_lost ON run (worker, ended_ms) WHERE state = 'lost';
CREATE INDEX trial_to_renew ON trial (id) WHERE state = 'queued' AND result_version < due_version;
CREATE TRIGGER sweep_counted AFTER INSERT ON sweep BEGIN
  INSERT INTO sweep_count (sweep_id) VALUES (NEW.id);
END;
CREATE TRIGGER new_claim_counted AFTER INSERT ON sweep_trial
WHEN NOT NEW.withdrawn AND (SELECT state FROM trial WHERE id = NEW.trial_id) = 'queued' BEGIN
  UPDATE sweep_count SET queued = queued + 1 WHERE sweep_id = NEW.sweep_id;
END;
CREATE TRIGGER claim_counted AFTER INSERT ON sweep_trial
WHEN NEW.withdrawn OR (SELECT state FROM trial WHERE id = NEW.trial_id) <> 'queued' BEGIN
  UPDATE sweep_count SET
    queued = queued + (t.state = 'queued' AND NOT NEW.withdrawn), leased = leased + (t.state = 'leased' AND NOT NEW.withdrawn),
    running = running + (t.state = 'running' AND NOT NEW.withdrawn), completed = completed + (t.state = 'completed'),
    failed = failed + (t.state = 'failed'), held = held + (t.state = 'held' AND NOT NEW.withdrawn),
    cancelled = cancelled + (t.state = 'cancelled' OR (NEW.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled + (t.state = 'completed' AND NEW.unfilled > 0),
    finished_ms = MAX(sweep_count.finished_ms, CASE WHEN NEW.withdrawn THEN 0 ELSE COALESCE(t.finished_ms, 0) END)
  FROM trial t WHERE t.id = NEW.trial_id AND sweep_count.sweep_id = NEW.sweep_id;
END;
CREATE TRIGGER claim_recounted AFTER UPDATE OF trial_id, withdrawn, unfilled ON sweep_trial
WHEN OLD.trial_id <> NEW.trial_id OR OLD.withdrawn <> NEW.withdrawn OR (OLD.unfilled > 0) <> (NEW.unfilled > 0) BEGIN
  UPDATE sweep_count SET
    queued = queued - (t.state = 'queued' AND NOT OLD.withdrawn), leased = leased - (t.state = 'leased' AND NOT OLD.withdrawn),
    running = running - (t.state = 'running' AND NOT OLD.withdrawn), completed = completed - (t.state = 'completed'),
    failed = failed - (t.state = 'failed'), held = held - (t.state = 'held' AND NOT OLD.withdrawn),
    cancelled = cancelled - (t.state = 'cancelled' OR (OLD.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled - (t.state = 'completed' AND OLD.unfilled > 0)
  FROM trial t WHERE t.id = OLD.trial_id AND sweep_count.sweep_id = OLD.sweep_id;
  UPDATE sweep_count SET
    queued = queued + (t.state = 'queued' AND NOT NEW.withdrawn), leased = leased + (t.state = 'leased' AND NOT NEW.withdrawn),
    running = running + (t.state = 'running' AND NOT NEW.withdrawn), completed = completed + (t.state = 'completed'),
    failed = failed + (t.state = 'failed'), held = held + (t.state = 'held' AND NOT NEW.withdrawn),
    cancelled = cancelled + (t.state = 'cancelled' OR (NEW.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled + (t.state = 'completed' AND NEW.unfilled > 0),
    finished_ms = MAX(sweep_count.finished_ms, CASE WHEN NEW.withdrawn THEN 0 ELSE COALESCE(t.finished_ms, 0) END)
  FROM trial t WHERE t.id = NEW.trial_id AND sweep_count.sweep_id = NEW.sweep_id;
END;
CREATE TRIGGER trial_stepped AFTER UPDATE OF state ON trial WHEN OLD.state <> NEW.state BEGIN
  INSERT INTO transition (time_ms, trial_id, was, state, run_id, reason)
  VALUES (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), NEW.id, OLD.state, NEW.state, NEW.run_id,
          CASE WHEN NEW.reason <> '' THEN NEW.reason
               WHEN OLD.state IN ('leased', 'running') THEN COALESCE((SELECT reason FROM run WHERE id = NEW.run_id), '') ELSE '' END);
END;
CREATE VIEW trial_summary AS
SELECT s.name AS sweep, r.id AS row, r.label AS label, st.seed AS seed, t.state AS state,
       CASE t.state WHEN 'queued' THEN (SELECT reason FROM trial_waiting WHERE trial = t.id) ELSE t.reason END AS reason,
       t.attempt AS attempt, run.worker AS worker, run.step AS step, run.total_steps AS total_steps,
       (SELECT json_group_object(m.name, COALESCE(ms.last, ms.last_kind))
        FROM metric_summary ms JOIN metric m ON m.id = ms.metric_id WHERE ms.run_id = t.run_id) AS last,
       t.id AS trial, t.run_id AS run, t.config_hash AS config_hash, st.withdrawn AS withdrawn,
       t.state = 'completed' AND t.result_version < t.due_version AS before_mend
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
LEFT JOIN run ON run.id = t.run_id;
CREATE INDEX sweep_level_held ON sweep_level (sweep_id) WHERE held <> '';
CREATE INDEX sweep_removing ON sweep (id) WHERE removing IS NOT NULL;
CREATE TRIGGER sweep_removed AFTER DELETE ON sweep BEGIN UPDATE store SET last_sweep = MAX(last_sweep, OLD.id); END;
CREATE TRIGGER trial_removed AFTER DELETE ON trial BEGIN UPDATE store SET last_trial = MAX(last_trial, OLD.id); END;
CREATE TRIGGER run_removed AFTER DELETE ON run BEGIN UPDATE store SET last_run = MAX(last_run, OLD.id); END;
CREATE TRIGGER claim_removed AFTER DELETE ON sweep_trial BEGIN
  UPDATE sweep_count SET
    queued = queued - (t.state = 'queued' AND NOT OLD.withdrawn), leased = leased - (t.state = 'leased' AND NOT OLD.withdrawn),
    running = running - (t.state = 'running' AND NOT OLD.withdrawn), completed = completed - (t.state = 'completed'),
    failed = failed - (t.state = 'failed'), held = held - (t.state = 'held' AND NOT OLD.withdrawn),
    cancelled = cancelled - (t.state = 'cancelled' OR (OLD.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled - (t.state = 'completed' AND OLD.unfilled > 0)
  FROM trial t WHERE t.id = OLD.trial_id AND sweep_count.sweep_id = OLD.sweep_id;
END;
CREATE INDEX trial_newest_run ON trial (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX trial_replaced ON trial (replaced_by) WHERE replaced_by IS NOT NULL;
CREATE INDEX run_resumed ON run (resumed_from_run) WHERE resumed_from_run IS NOT NULL;
CREATE TRIGGER trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state
 AND (SELECT COUNT(*) = 1 AND MAX(withdrawn) = 0 AND MAX(unfilled) = 0 FROM sweep_trial WHERE trial_id = NEW.id) BEGIN
  UPDATE sweep_count SET
    queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
    leased = leased + (NEW.state = 'leased') - (OLD.state = 'leased'),
    running = running + (NEW.state = 'running') - (OLD.state = 'running'),
    completed = completed + (NEW.state = 'completed') - (OLD.state = 'completed'),
    failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
    held = held + (NEW.state = 'held') - (OLD.state = 'held'),
    cancelled = cancelled + (NEW.state = 'cancelled') - (OLD.state = 'cancelled'),
    finished_ms = MAX(finished_ms, COALESCE(NEW.finished_ms, 0))
  WHERE sweep_id = (SELECT sweep_id FROM sweep_trial WHERE trial_id = NEW.id);
END;
CREATE TRIGGER shared_trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state
 AND NOT (SELECT COUNT(*) = 1 AND MAX(withdrawn) = 0 AND MAX(unfilled) = 0 FROM sweep_trial WHERE trial_id = NEW.id) BEGIN
  UPDATE sweep_count SET
    queued = queued + wanted * ((NEW.state = 'queued') - (OLD.state = 'queued')),
    leased = leased + wanted * ((NEW.state = 'leased') - (OLD.state = 'leased')),
    running = running + wanted * ((NEW.state = 'running') - (OLD.state = 'running')),
    completed = completed + claims * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    failed = failed + claims * ((NEW.state = 'failed') - (OLD.state = 'failed')),
    held = held + wanted * ((NEW.state = 'held') - (OLD.state = 'held')),
    cancelled = cancelled + claims * ((NEW.state = 'cancelled') - (OLD.state = 'cancelled'))
              + (claims - wanted) * ((NEW.state IN ('queued', 'leased', 'running', 'held')) - (OLD.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = sweep_count.unfilled + lacking * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    finished_ms = CASE WHEN wanted > 0 THEN MAX(finished_ms, COALESCE(NEW.finished_ms, 0)) ELSE finished_ms END
  FROM (SELECT sweep_id AS sweep, COUNT(*) AS claims, COUNT(*) FILTER (WHERE NOT withdrawn) AS wanted,
               COUNT(*) FILTER (WHERE unfilled > 0) AS lacking
        FROM sweep_trial WHERE trial_id = NEW.id GROUP BY sweep_id) c
  WHERE sweep_count.sweep_id = c.sweep;
END;
CREATE INDEX trial_open ON trial (id) WHERE state = 'queued' OR state = 'leased' OR state = 'running';
CREATE INDEX provenance_diff ON sweep_provenance (diff) WHERE diff IS NOT NULL;
CREATE INDEX provenance_packages ON sweep_provenance (packages) WHERE packages IS NOT NULL;
CREATE VIEW table_cell AS
WITH sample AS (                 -- one line for each value that a cell is made of
  SELECT st.sweep_id, st.row, c.position,
         CASE c.take WHEN 'best' THEN CASE c.better WHEN 'lower' THEN ms.min ELSE ms.max END
                     WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                     WHEN 'mean' THEN ms.sum / ms.finite ELSE ms.last END AS value,
         CASE c.take WHEN 'last' THEN ms.last IS NULL ELSE ms.finite < ms.count END AS diverged
  FROM sweep_column c
  JOIN sweep_trial st ON st.sweep_id = c.sweep_id
  JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  JOIN metric m ON m.name = c.source
  JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = m.id
  WHERE c.kind = 'metric'
  UNION ALL
  SELECT r.sweep_id, r.position, c.position, mc.value, 0
  FROM sweep_column c
  JOIN sweep_row r ON r.sweep_id = c.sweep_id
  JOIN model_count mc ON mc.model_hash = r.model_hash AND mc.mode = c.source
                     AND mc.version = (SELECT MAX(version) FROM model_count WHERE model_hash = r.model_hash AND mode = c.source)
  WHERE c.kind = 'count'
), centred AS (
  SELECT *, AVG(value) OVER (PARTITION BY sweep_id, row, position) AS mean FROM sample
), cell AS (                     -- a value that is not finite leaves no mean
  SELECT sweep_id, row, position, COUNT(*) AS n, SUM(diverged) AS diverged,
         CASE WHEN COUNT(*) = COUNT(value) THEN MAX(mean) END AS mean,
         CASE WHEN COUNT(*) = COUNT(value) AND COUNT(*) > 1
              THEN SQRT(SUM((value - mean) * (value - mean)) / (COUNT(*) - 1)) END AS sd
  FROM centred GROUP BY sweep_id, row, position
), done AS (                     -- completed trials of a row, and how many of them were made before a correction
  SELECT st.sweep_id, st.row, COUNT(*) AS trials, SUM(t.result_version < t.due_version) AS before_mend
  FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  GROUP BY st.sweep_id, st.row
)
SELECT s.name AS sweep, r.id AS row, r.label AS label, c.name AS "column", COALESCE(cell.n, 0) AS n,
       cell.mean AS mean, cell.sd AS sd, p.printed AS paper,
       CASE c.kind WHEN 'setting' THEN r.set_json ->> ('$."' || c.source || '"') END AS setting,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.trials, 0) - COALESCE(cell.n, 0) ELSE 0 END AS missing,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.before_mend, 0) ELSE 0 END AS before_mend,
       COALESCE(cell.diverged, 0) AS diverged
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_column c ON c.sweep_id = s.id
LEFT JOIN cell ON cell.sweep_id = s.id AND cell.row = r.position AND cell.position = c.position
LEFT JOIN done ON done.sweep_id = s.id AND done.row = r.position
LEFT JOIN sweep_paper p ON p.sweep_id = s.id AND p.row = r.position AND p.name = c.name;
CREATE INDEX trial_source_of ON trial_source (source_id);
CREATE VIEW trial_awaits AS      -- what a trial waits for: '' || what || how
SELECT ts.trial_id AS trial, ts.source_id AS source, src.state AS state,
       COALESCE((SELECT 'row ' || r.id || ', seed ' || st.seed
                        || CASE WHEN EXISTS (SELECT 1 FROM sweep_trial o WHERE o.trial_id = ts.trial_id AND o.sweep_id <> st.sweep_id)
                                THEN ' of ' || s.name ELSE '' END
                 FROM sweep_trial mine
                 CROSS JOIN sweep_trial st ON st.trial_id = ts.source_id AND st.sweep_id = mine.sweep_id
                 CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                 CROSS JOIN sweep s ON s.id = st.sweep_id
                 WHERE mine.trial_id = ts.trial_id ORDER BY mine.sweep_id, st.row, st.seed_index LIMIT 1),
                'trial ' || ts.source_id) AS what,
       ' (' || src.state || CASE WHEN src.state = 'running' AND run.total_steps > 0
                                 THEN ', ' || (100 * run.step / run.total_steps) || ' %' ELSE '' END || ')' AS how,
       CASE src.state WHEN 'failed' THEN 'failed: ' WHEN 'held' THEN 'is held: ' ELSE 'is ' || src.state END
       || CASE src.state WHEN 'failed' THEN src.reason WHEN 'held' THEN src.reason ELSE '' END AS fate
FROM trial_source ts JOIN trial src ON src.id = ts.source_id LEFT JOIN run ON run.id = src.run_id
WHERE src.state <> 'completed';
CREATE TRIGGER source_counted AFTER INSERT ON trial_source BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = NEW.trial_id AND s.state <> 'completed') WHERE id = NEW.trial_id;
END;
CREATE TRIGGER source_uncounted AFTER DELETE ON trial_source BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = OLD.trial_id AND s.state <> 'completed') WHERE id = OLD.trial_id;
END;
CREATE TRIGGER source_completed AFTER UPDATE OF state ON trial
WHEN (OLD.state = 'completed') <> (NEW.state = 'completed') AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = trial.id AND s.state <> 'completed')
  WHERE id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id);
END;
CREATE TRIGGER source_gone AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND (NEW.state = 'failed' OR NEW.state = 'cancelled' OR NEW.state = 'held')
 AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET state = 'held', held_for_source = 1, waiting = '', not_before_ms = 0,
         reason = (SELECT 'held: ' || what || ', whose weights it takes, ' || fate FROM trial_awaits WHERE trial = trial.id AND source = NEW.id)
  WHERE state = 'queued' AND id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id);
END;
CREATE TRIGGER source_back AFTER UPDATE OF state ON trial
WHEN NEW.state IN ('queued', 'leased', 'running', 'completed') AND OLD.state IN ('failed', 'cancelled', 'held')
 AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET state = 'queued', held_for_source = 0, reason = '', finished_ms = NULL
  WHERE state = 'held' AND held_for_source AND id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id)
    AND NOT EXISTS (SELECT 1 FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                    WHERE ts.trial_id = trial.id AND s.id <> NEW.id
                      AND (s.state = 'failed' OR s.state = 'cancelled' OR (s.state = 'held' AND NOT s.held_for_source)));
END;
CREATE TRIGGER queued_without_source AFTER UPDATE OF state, awaits ON trial
WHEN NEW.state = 'queued' AND NEW.awaits > 0
 AND EXISTS (SELECT 1 FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
             WHERE ts.trial_id = NEW.id AND (s.state = 'failed' OR s.state = 'cancelled' OR (s.state = 'held' AND NOT s.held_for_source))) BEGIN
  UPDATE trial SET state = 'held', held_for_source = 1, waiting = '', not_before_ms = 0,
         reason = (SELECT 'held: ' || what || ', whose weights it takes, ' || fate FROM trial_awaits
                   WHERE trial = NEW.id AND (state = 'failed' OR state = 'cancelled' OR state = 'held') ORDER BY source LIMIT 1)
  WHERE id = NEW.id;
END;
CREATE INDEX sweep_budget ON sweep (id) WHERE gpu_ms_limit IS NOT NULL OR until_ms IS NOT NULL;
CREATE INDEX sweep_former_trial ON sweep_former (trial_id);
CREATE INDEX trial_continued ON trial (continues) WHERE continues IS NOT NULL;
CREATE VIEW trial_waiting AS     -- why a queued trial waits: what is of it alone, or of all that need the same
SELECT t.id AS trial,
       CASE WHEN t.state <> 'queued' THEN ''
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active') THEN 'sweep is paused'
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active' AND s.spent = '')
            THEN (SELECT MIN(s.spent) FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                  WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active')
            WHEN t.awaits > 0 THEN COALESCE((SELECT 'waits for ' || a.what || a.how FROM trial_awaits a
                                             JOIN trial_source ts ON ts.trial_id = a.trial AND ts.source_id = a.source AND ts.name <> ''
                                             WHERE a.trial = t.id ORDER BY a.source LIMIT 1), 'waits for the weights of another trial')
            WHEN t.waiting <> '' THEN t.waiting
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active'
                               AND (s.max_running IS NULL OR n.leased + n.running < s.max_running))
            THEN 'sweep runs as many trials at once as it may'
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active'
                               AND NOT (s.canary AND n.leased + n.running > 0))
            THEN 'a few trials of its sweep run first: none has got through yet'
            ELSE COALESCE((SELECT waiting FROM shape WHERE id = t.shape_id), '') END AS reason
FROM trial t;
CREATE INDEX sweep_growth_open ON sweep_growth (sweep_id, baseline, position) WHERE open = 1;
CREATE INDEX sweep_growth_undecided ON sweep_growth (sweep_id, baseline, position) WHERE decided = 0;
CREATE INDEX sweep_growth_compared ON sweep_growth (sweep_id, baseline) WHERE baseline <> '';
CREATE UNIQUE INDEX sweep_growth_position ON sweep_growth (sweep_id, position) WHERE position >= 0;
CREATE INDEX sweep_growth_p ON sweep_growth (sweep_id, p) WHERE planned = 1 AND decided = 0 AND p IS NOT NULL;
CREATE INDEX sweep_growth_twin ON sweep_growth (sweep_id, twin) WHERE twin <> '';
CREATE TRIGGER growth_due_end AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND NOT (OLD.state IN ('queued', 'leased', 'running') AND NEW.state IN ('queued', 'leased', 'running')) BEGIN
  INSERT INTO growth_due (sweep_id, row) SELECT st.sweep_id, st.row FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
  WHERE st.trial_id = NEW.id AND s.seeds_rule <> '' AND s.state <> 'cancelled' ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
CREATE TRIGGER growth_due_claim AFTER INSERT ON sweep_trial
WHEN (SELECT seeds_rule <> '' FROM sweep WHERE id = NEW.sweep_id) BEGIN
  INSERT INTO growth_due (sweep_id, row) VALUES (NEW.sweep_id, NEW.row) ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
CREATE TRIGGER growth_due_other AFTER UPDATE OF trial_id, withdrawn ON sweep_trial
WHEN (SELECT seeds_rule <> '' AND state <> 'cancelled' FROM sweep WHERE id = NEW.sweep_id) BEGIN
  INSERT INTO growth_due (sweep_id, row) VALUES (NEW.sweep_id, NEW.row) ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
CREATE INDEX sweep_row_config ON sweep_row (config_hash) WHERE config_hash <> '';
CREATE TRIGGER predicted_for_rows AFTER DELETE ON sweep_row
WHEN OLD.config_hash <> '' AND NOT EXISTS (SELECT 1 FROM sweep_row WHERE config_hash = OLD.config_hash AND config_hash <> '') BEGIN
  DELETE FROM predicted WHERE hash = OLD.config_hash;
END;
CREATE TRIGGER predicted_until_measured AFTER INSERT ON measured WHEN NEW.runs > 0 BEGIN
  DELETE FROM predicted WHERE hash = NEW.hash AND gpus = NEW.gpus;
END;
CREATE TRIGGER predicted_until_measured_again AFTER UPDATE OF runs ON measured WHEN OLD.runs = 0 AND NEW.runs > 0 BEGIN
  DELETE FROM predicted WHERE hash = NEW.hash AND gpus = NEW.gpus;
END;
CREATE INDEX calibration_time ON calibration (time_ms);
CREATE UNIQUE INDEX tuning_point_row ON tuning_point (sweep_id, tuning_row);
CREATE INDEX access_token_name ON access_token (role, name);
CREATE INDEX sweep_pinned ON sweep (id) WHERE pinned = 1 AND archived_ms IS NULL;
CREATE INDEX sweep_archived ON sweep (id) WHERE archived_ms IS NOT NULL;
CREATE TRIGGER sweep_count_open AFTER UPDATE OF queued ON sweep_count
  WHEN NEW.queued > 0 AND OLD.queued + OLD.leased + OLD.running = 0 BEGIN
  UPDATE sweep SET archived_ms = NULL WHERE archived_ms IS NOT NULL
    AND (id = NEW.sweep_id OR id = (SELECT sweep_id FROM sweep_tuning WHERE by_id = NEW.sweep_id));
END;
CREATE VIEW run_resources AS
SELECT s.name AS sweep, r.id AS row, st.seed AS seed, run.id AS run, run.attempt AS attempt, run.id = t.run_id AS newest,
       u.samples AS samples, u.over_ms / 1000.0 AS seconds,
       CASE WHEN u.cpu_over_ms > 0 THEN u.cpu_ms / u.cpu_over_ms END AS cpu_cores,
       u.peak_memory_bytes AS peak_memory_bytes,
       CASE WHEN u.gpu_over_ms > 0 THEN u.gpu_ms / u.gpu_over_ms END AS gpu,
       u.peak_gpu_memory_bytes AS peak_gpu_memory_bytes,
       CASE WHEN u.disk_over_ms > 0 THEN u.read_bytes END AS read_bytes,
       CASE WHEN u.disk_over_ms > 0 THEN u.written_bytes END AS written_bytes,
       CASE WHEN u.data_of_ms > 0 THEN 1.0 * u.data_wait_ms / u.data_of_ms END AS data_wait,
       u.least_free_bytes AS least_free_bytes
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
JOIN run ON run.trial_id = t.id
JOIN resource_use u ON u.run_id = run.id;
COMMIT;
PRAGMA application_id = 1633840177;
PRAGMA user_version = 15;
