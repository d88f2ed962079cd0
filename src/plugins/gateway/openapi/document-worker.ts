/** Reads one document on a thread of its own, which has a limit of memory and of time. */
import { parentPort, workerData } from 'node:worker_threads';
import { type DocumentTask, resultOf } from './description.ts';

parentPort?.postMessage(await resultOf(workerData as DocumentTask));
