import { z } from 'zod';
import { textOf } from '../../core/host/history/answer-text.ts';
import { startWorker } from '../../core/kernel/worker.ts';
import { IncidentsError } from './errors.ts';
import { defineTool } from './tool.ts';
import type { Verdict } from './verify-worker.ts';

/** The largest heap of the thread, MiB. */
const HEAP_MIB = 128;

export const verifyLog = defineTool({
  name: 'verify_log',
  title: 'Verify the log',
  description:
    'Checks the chain of hashes, the signatures and the saved states of the whole log: whether any record was changed, ' +
    'removed or cut off. Takes seconds per 100,000 records. Use it once, before you rely on the log as evidence.',
  input: z.object({}),
  output: z.object({
    ok: z.boolean(),
    problem: z.string().optional().describe('what is wrong, and what to do'),
    records: z.int().optional(),
    first: z.int().optional(),
    last: z.int().optional(),
    checkpoints: z.int().optional().describe('saved states that match'),
    head: z
      .string()
      .optional()
      .describe('record and hash of the newest record: keep it elsewhere to find cuts later'),
    signedUpTo: z.int().optional(),
    missing: z.array(z.string()).optional().describe('records that a repair could not save'),
  }),
  async answer(_input, { services, signal }) {
    const verdict = await verdictOn(services.dataDir, signal);
    if (!verdict.ok)
      return {
        fields: { ok: false, problem: textOf(`${verdict.code}: ${verdict.problem} ${verdict.remedy}`) },
      };
    const { records, first, last, checkpoints, head, signed, missing } = verdict.report;
    return {
      fields: {
        ok: true,
        records,
        first,
        last,
        checkpoints,
        ...(head !== undefined && { head }),
        ...(signed && { signedUpTo: signed.upTo }),
        ...(missing && {
          missing: missing.map(({ from, to, reason }) => textOf(`${from} to ${to}: ${reason}`)),
        }),
      },
    };
  },
});

/** @throws HF_INCIDENTS_CHECK the thread ended without a verdict; the signal's reason */
async function verdictOn(dataDir: string, signal: AbortSignal): Promise<Verdict> {
  const { promise, resolve, reject } = Promise.withResolvers<Verdict>();
  const worker = startWorker<Verdict>({
    module: './verify-worker',
    base: import.meta.url,
    name: 'incidents-verify',
    data: dataDir,
    heapMiB: HEAP_MIB,
    onMessage: resolve,
    onEnd: (reason) => reject(new IncidentsError('HF_INCIDENTS_CHECK', { reason })),
  });
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
