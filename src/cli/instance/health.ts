import type { RouterTransaction } from '../../core/contracts/router-transaction.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { Health, LastRun } from './shapes.ts';

/** An instance that works answers at once. */
const PATIENCE_MS = 3_000;

/**
 * Asks `GET /healthz` of a running instance.
 *
 * @param url of its console surface
 * @param pid of the instance: another process may have taken the port meanwhile
 */
export async function askHealth(
  url: string,
  pid: number,
  signal: AbortSignal,
): Promise<Health | { readonly reason: string }> {
  let body: unknown;
  try {
    // Node's own fetch is undici, and loads in a tenth of the package's time.
    const answer = await fetch(`${url}/healthz`, {
      headers: { connection: 'close' },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
    });
    body = await answer.json();
  } catch (error) {
    signal.throwIfAborted();
    return { reason: `${url}/healthz does not answer (${causeOf(error)})` };
  }
  if (!isHealth(body)) return { reason: `${url}/healthz answers something else` };
  if (body.pid !== pid) return { reason: `${url}/healthz is answered by another process` };
  const {
    status,
    reasons,
    plugins,
    log,
    transaction,
    lastStop,
    pid: _,
    startedAt: __,
    version: ___,
    ...facts
  } = body;
  return {
    state: status,
    ...(Array.isArray(reasons) && { reasons: reasons.filter((text) => typeof text === 'string') }),
    plugins,
    log,
    facts,
    ...(isObject(transaction) && { transaction: transaction as unknown as RouterTransaction }),
    ...(isObject(lastStop) && { lastStop: lastStop as unknown as LastRun }),
  };
}

type Body = Pick<Health, 'plugins' | 'log'> & {
  readonly status: Health['state'];
  readonly pid: number;
  readonly [fact: string]: unknown;
};

function isHealth(body: unknown): body is Body {
  return (
    isObject(body) &&
    (body.status === 'ok' || body.status === 'degraded' || body.status === 'failing') &&
    Array.isArray(body.plugins) &&
    isObject(body.log)
  );
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `nothing came within ${PATIENCE_MS} ms`;
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? error.message;
}
