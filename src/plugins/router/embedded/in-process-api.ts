import type { InterfaceView, ReapplyAnswer, RouterApi, SetAnswer } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { Reply } from '../../../core/host/http/pending-replies.ts';
import { newCorrelation } from '../../../core/kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { interfaceOf, stringsOf, withoutControlFields } from '../config/network-config.ts';
import type { ConfigWrites, Writer } from './config-writes.ts';
import type { RouterAccess } from './embedded-router.ts';
import { interfaceView } from './interface-view.ts';
import type { KernelWatch } from './kernel/watch.ts';

/** The name of in-process writers in records and in the history. */
const WHO = 'holdfast';

/**
 * The router's API for plugins of the same process, by the same way as over HTTP. Control fields are dropped, so that
 * no plugin can bypass the ncid check or write into another client's transaction.
 */
export function inProcessApi({
  router,
  writes,
  watch,
  services: { actors, pendingReplies },
}: RouterAccess & {
  readonly writes: ConfigWrites;
  readonly watch?: Pick<KernelWatch, 'current'> | undefined;
}): RouterApi {
  const write = async (
    source: Pick<Writer, 'correlation' | 'cause'>,
    signal: AbortSignal | undefined,
    send: (writer: Writer) => Promise<Reply>,
  ): Promise<SetAnswer> => {
    if (signal?.aborted) return unknown('it was cancelled before it was posted');
    if (!actors.accepting()) return unknown('the event log cannot take the decision now');
    const writer = { request: newCorrelation(), ...source, who: WHO };
    const giveUp = () => pendingReplies.fail(writer.request, new HostError('HF_HTTP_STOPPING'));
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      return answerOf(await send(writer));
    } catch (error) {
      if (!isCoded(error)) throw error;
      return isRefusal(error) ? { kind: 'refused', errors: [error.what] } : unknown(error.what);
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  };
  return {
    async active() {
      return JSON.parse((await router.active()).body);
    },
    set: (config, correlation, signal, { cause } = {}) =>
      write({ correlation, cause }, signal, (writer) => writes.set(withoutControlFields(config), writer)),
    interfaceState: (intf) => interfaceState(router, watch, intf),
    async reapply(correlation, signal) {
      const answer = await write({ correlation }, signal, (writer) => writes.applyCurrent(writer));
      return reapplyAnswerOf(answer);
    },
  };
}

/** Without a process where the kernel is watched: every leg is looked at regularly, for ever (R29). */
async function interfaceState(
  router: RouterAccess['router'],
  watch: Pick<KernelWatch, 'current'> | undefined,
  intf: string,
): Promise<InterfaceView | undefined> {
  const { config, observed } = await router.observe(watch?.current());
  const entry = interfaceOf(config, intf);
  if (!entry) return undefined;
  return { config: entry.config, state: { ...interfaceView(config, entry, observed).state } };
}

/** A reapply keeps the ncid, so it loses no race for it. */
function reapplyAnswerOf(answer: SetAnswer): ReapplyAnswer {
  if (answer.kind === 'applied') return { kind: 'applied' };
  return answer.kind === 'conflict' ? unknown('the config was changed meanwhile') : answer;
}

function answerOf({ status, body }: Reply): SetAnswer {
  const { ncid, code, errors: given } = isObject(body) ? body : {};
  const errors = stringsOf(given);
  if (status === 200) return { kind: 'applied', ncid: String(ncid ?? '') };
  if (code === 'HF_ROUTER_NCID_MISMATCH') return { kind: 'conflict' };
  if (code === 'HF_ROUTER_TRANSACTION_PENDING') return { kind: 'pending' };
  // Nothing was applied, but reading again and posting anew is exactly what a busy router needs.
  if (code === 'HF_ROUTER_BUSY') return unknown(errors.join('; '));
  return { kind: 'refused', errors };
}

function isRefusal({ code }: HoldfastError): boolean {
  return code === 'HF_ROUTER_REQUEST_INVALID' || code === 'HF_ROUTER_CONFIG_INVALID';
}

function unknown(reason: string): Extract<SetAnswer, { kind: 'unknown' }> {
  return { kind: 'unknown', reason };
}
