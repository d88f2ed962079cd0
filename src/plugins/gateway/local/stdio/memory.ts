import { readdirSync, readFileSync } from 'node:fs';

/** More processes than this of one program are not counted one by one: it is far over its memory by then. */
const MOST_PROCESSES = 256;

/**
 * The resident memory of a program and of all that it started, as Linux gives it in /proc; pages that several of them share
 * count for each.
 *
 * @returns bytes; 0 where the system does not say
 */
export function residentBytes(pid: number): number {
  let bytes = 0;
  const open = [pid];
  for (let seen = 0; seen < MOST_PROCESSES; seen += 1) {
    const next = open.pop();
    if (next === undefined) break;
    bytes += residentOf(next);
    open.push(...childrenOf(next));
  }
  return bytes;
}

function residentOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1];
  return Number(kib ?? 0) * 1_024;
}

/** Each thread has those that it started. */
function childrenOf(pid: number): readonly number[] {
  let threads: readonly string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // it has ended
  }
  const lists = threads.map((thread) => read(`/proc/${pid}/task/${thread}/children`));
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
