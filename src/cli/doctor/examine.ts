import { maskText } from '../../core/host/logging/mask-text.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';

/** A check with what it found. */
export interface Finding extends CheckResult {
  readonly name: string;
}

/** So long may one check take, milliseconds; a router that is far away answers within it, or is unwell. */
const PATIENCE_MS = 20_000;

class TooLate extends Error {}

/** Makes all checks at once and gives what they found in their order. Never throws for what a check does. */
export function examine(
  checks: readonly CheckDefinition[],
  context: CheckContext,
  patienceMs = PATIENCE_MS,
): Promise<Finding[]> {
  return Promise.all(checks.map((check) => examineOne(check, context, patienceMs)));
}

async function examineOne(
  { name, run }: CheckDefinition,
  context: CheckContext,
  patienceMs: number,
): Promise<Finding> {
  const over = new AbortController();
  // A timer that keeps the process alive, unlike that of AbortSignal.timeout: the check may hold nothing that does.
  const timer = setTimeout(() => over.abort(new TooLate()), patienceMs);
  const signal = AbortSignal.any([context.signal, over.signal]);
  try {
    const late = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    const { state, lookedAt, found, remedy } = await Promise.race([run({ ...context, signal }), late]);
    return {
      name,
      state,
      lookedAt: maskText(lookedAt),
      found: maskText(found),
      ...(remedy !== undefined && { remedy: maskText(remedy) }),
    };
  } catch (error) {
    context.signal.throwIfAborted();
    return { name, state: 'fail', lookedAt: name, ...reasonOf(error, patienceMs) };
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown, patienceMs: number): Pick<Finding, 'found' | 'remedy'> {
  if (isCoded(error)) return { found: maskText(error.what), remedy: maskText(error.remedy) };
  if (error instanceof TooLate) {
    const found = `no result within ${patienceMs / 1_000} s`;
    return { found, remedy: 'Look whether what it asks answers at all, and try again.' };
  }
  const found = maskText(error instanceof Error ? error.message : String(error));
  return { found, remedy: 'This is a fault of the check itself: report it.' };
}
