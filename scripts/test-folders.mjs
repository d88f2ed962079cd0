// Loaded into every worker of AVA before its test file: where the file's temporary folders are made. Those of fast tests are in
// memory, where `npm test` has found enough of it. Slow tests kill processes and fill disks, and keep to the disk: how long a sync
// takes decides what is under way when a process is killed.
import { tmpdir } from 'node:os';
import test from 'ava';

const { HOLDFAST_TESTS_IN_MEMORY: folder } = process.env;
if (folder && !test.meta.file.endsWith('.slow.test.ts')) {
  process.env.TESTS_DISK = tmpdir(); // for the few that ask for a disk: `diskDir` of test/support/temp.ts
  process.env.TMPDIR = folder;
}
