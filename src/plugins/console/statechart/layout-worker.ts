/** Places one statechart on a thread of its own, which has a limit of memory and of time. */
import { parentPort, workerData } from 'node:worker_threads';
import type { MachineGraph } from './graph.ts';
import { layOut } from './layout.ts';

parentPort?.postMessage(await layOut(workerData as MachineGraph));
