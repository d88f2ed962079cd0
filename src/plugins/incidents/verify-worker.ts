/** Checks a log on a thread of its own: SQLite reads the whole file at once, which would hold up everything else. */
import { parentPort, workerData } from 'node:worker_threads';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type IntegrityReport, integritySteps } from '../../core/kernel/log/integrity.ts';
import { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { notedTrust } from '../../core/kernel/log/trust.ts';

/** What the thread says at its end. */
export type Verdict =
  | { readonly ok: true; readonly report: IntegrityReport }
  | { readonly ok: false; readonly code: string; readonly problem: string; readonly remedy: string };

function verdictOn(dataDir: string): Verdict {
  // Noted before the log is opened: the log may go on meanwhile, and is never behind what was noted of it.
  const trust = notedTrust(dataDir);
  const log = new SqliteReader(dataDir);
  try {
    const steps = integritySteps(log, trust);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return { ok: true, report: value };
    }
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { ok: false, code: error.code, problem: error.what, remedy: error.remedy };
  } finally {
    log.close();
  }
}

parentPort?.postMessage(verdictOn(String(workerData)));
