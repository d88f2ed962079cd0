/** The thread of a store's long work, one job after another: each may take minutes. */
import { parentPort } from 'node:worker_threads';
import { codedFailure } from '../engine/database.ts';
import type { Job, JobReply } from './jobs.ts';
import { recover } from './recover.ts';
import { copy, snapshot } from './snapshot.ts';

function run(job: Job): JobReply {
  try {
    if (job.kind === 'snapshot') snapshot(job);
    else if (job.kind === 'recover') recover(job);
    else copy(job);
    return { ok: true };
  } catch (error) {
    return { ok: false, error: codedFailure(error, 'what was to be written').toData() };
  }
}

parentPort?.on('message', (job: Job) => parentPort?.postMessage(run(job)));
