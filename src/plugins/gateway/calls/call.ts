import type { Logger } from 'pino';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import { slotOf } from '../../../machines/gateway/key-limits.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { ToolForApproval } from '../approvals/new-request.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { plainRefusal } from '../mcp/answers.ts';
import { type Answer, INTERNAL_ERROR, rpcError } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import type { ServedRoutes } from '../routes/route.ts';
import { type SpanServices, startSpan } from '../telemetry/call-telemetry.ts';
import { stopped } from '../upstream/failures.ts';
import type { CallOutcome } from '../upstream/inspection.ts';
import { type CallTarget, type DecisionFacts, decisionFacts } from './decision-facts.ts';

/** The path that telemetry shows where the request named no server: paths that a caller made up are not repeated. */
export const NOWHERE = '/(none)/mcp';

/** What every call uses of the gateway. */
export interface CallServices extends SpanServices {
  readonly logger: Logger;
  readonly routes: ServedRoutes;
  /** Where calls wait that a person must approve. */
  readonly approvals: Approvals;
}

/** A call as the gateway received it: who calls, with what message, and for which server. */
export interface ReceivedCall<Services extends CallServices = CallServices> {
  readonly gateway: Services;
  readonly exchange: Exchange;
  readonly key: AuthenticatedKey;
  /** The JSON-RPC message; undefined unless the request is a POST that could be read. */
  readonly message: Message | undefined;
  readonly target: CallTarget;
}

/**
 * One call of a client with a known key, from its request to its outcome: what its key's machine decides by, the
 * exchange it is answered on, and what ends it. The effects of the decision find it by its correlation id.
 */
export abstract class GatewayCall<Services extends CallServices = CallServices> {
  readonly gateway: Services;
  /** Another one once it had to wait: then its answer may be the end of an event stream. */
  exchange: Exchange;
  readonly key: AuthenticatedKey;
  readonly message: Message | undefined;
  /** The tool, where a person must approve the call. */
  readonly #forApproval: ToolForApproval | undefined;
  /** What the key's machine decides by; time and usage are added when it is asked. */
  readonly facts: DecisionFacts;
  /** Equal for calls that would get the same decision. */
  readonly signature: string;
  /** Identical calls that wait for the decision about this one. */
  followers: readonly GatewayCall[] = [];
  /** Whether `Decisions` has counted it in its key's burst of refused calls already. */
  isCounted = false;
  readonly #ending = new AbortController();
  #isHeld = false;

  constructor({ gateway, exchange, key, message, target }: ReceivedCall<Services>) {
    this.gateway = gateway;
    this.exchange = exchange;
    this.key = key;
    this.message = message;
    const { route } = target;
    const approvable = message && route?.tools.needingApproval(message);
    this.#forApproval = route && approvable !== undefined ? { route, tool: approvable } : undefined;
    startSpan(gateway, exchange, target.path, key.id, message);
    this.facts = decisionFacts(gateway, exchange.method, key, message, target);
    const { presented, method, tool = '', authorization = '', misplaced, routes } = this.facts;
    const where = misplaced?.where ?? '';
    this.signature = `${key.id} ${presented} ${method} ${tool} ${authorization} ${where} ${routes.join(' ')}`;
  }

  /** Aborted when the call must not go on: its client left, its key ended, or the gateway stops. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether it would go on after a stop of the gateway began: a stream, or a call that waits for a person. */
  get isLasting(): boolean {
    return this.isStream || this.#isHeld;
  }

  get isStream(): boolean {
    return slotOf(this.facts.method) === 'stream';
  }

  /** Whether it goes to a route that may change something. */
  get writes(): boolean {
    return this.facts.writes === true;
  }

  /** Ends it early. @param reason `KEY_ENDED`, `HOST_ISOLATED`, or any other, which the client sees as a stop of the gateway */
  abort(reason: unknown): void {
    this.#ending.abort(reason);
  }

  /** Carries it out. Never throws: whatever goes wrong is an outcome. */
  async forward(params: ForwardParams): Promise<CallEnded> {
    const { exchange, signal } = this;
    exchange.onClose(() => {
      if (exchange.hasLeft) this.abort(new Error('the client has left'));
    });
    exchange.admitted(signal);
    if (this.message?.method === 'notifications/cancelled') this.gateway.approvals.cancelled(this);
    let outcome: CallOutcome;
    try {
      outcome = await (this.#forApproval ? this.#approved(this.#forApproval, params) : this.carryOut(params));
    } catch (error) {
      outcome = signal.aborted ? stopped(this.exchange, signal, true) : this.#fail(error);
    }
    return this.#ended(outcome, params.cost);
  }

  /** The key's machine refuses it: answers it without an upstream. */
  refused(params: AnswerParams): CallEnded {
    this.refuse(params);
    return this.#ended({ outcome: 'answered' });
  }

  /** Answers a call whose decision could not be recorded: it is not forwarded. */
  failed(error: unknown): void {
    sendUndecided(this.gateway, this.exchange, error);
    for (const follower of this.followers) follower.failed(error);
  }

  /** Does what was admitted, and answers. A throw is a fault of the gateway itself. */
  protected abstract carryOut(params: ForwardParams): Promise<CallOutcome>;

  /** Answers what was refused. */
  protected abstract refuse(params: AnswerParams): void;

  #approved(called: ToolForApproval, params: ForwardParams): Promise<CallOutcome> {
    this.#isHeld = true;
    return this.gateway.approvals.hold(this, called, params, () => {
      this.#isHeld = false;
      return this.carryOut(params);
    });
  }

  #fail(cause: unknown): CallOutcome {
    const { exchange, message } = this;
    const { code, what, remedy } = logOwnFault(this.gateway, exchange, cause);
    if (exchange.begun) exchange.cut();
    else {
      const data = { code, correlation: exchange.correlation };
      exchange.send(rpcError(500, message?.id ?? null, INTERNAL_ERROR, `${what} ${remedy}`, data));
    }
    return { outcome: 'failed' };
  }

  #ended({ outcome, code, refusal }: CallOutcome, cost?: number): CallEnded {
    const { begun, status, ms, bytes, facts } = this.exchange;
    facts.outcome = outcome;
    return {
      type: 'CALL_ENDED',
      outcome,
      ms,
      bytes,
      ...(code !== undefined && { code }),
      ...(refusal !== undefined && { refusal }),
      ...(begun && status !== undefined && { status }),
      ...(cost !== undefined && { cost }),
    };
  }
}

/** A call whose answer is known before it is decided: its key may still be refused, and a misplaced key is reported. */
export class AnsweredCall extends GatewayCall {
  readonly #answer: Answer;

  constructor(received: ReceivedCall, answer: Answer) {
    super(received);
    this.#answer = answer;
  }

  protected override async carryOut(): Promise<CallOutcome> {
    this.exchange.send(this.#answer);
    return { outcome: 'answered' };
  }

  protected override refuse(params: AnswerParams): void {
    this.exchange.send(plainRefusal(params, undefined) ?? this.#answer);
  }
}

/** Answers a request that is not decided about, with a span of its own. */
export function answerUndecided(
  gateway: SpanServices,
  exchange: Exchange,
  path: string,
  answer: Answer,
  key?: string,
): void {
  startSpan(gateway, exchange, path, key);
  exchange.facts.outcome = 'answered';
  exchange.send(answer);
}

/** Answers what could not be decided. */
export function sendUndecided(
  gateway: Pick<CallServices, 'logger'>,
  exchange: Exchange,
  error: unknown,
): void {
  const { what, remedy } = isCoded(error) ? error : logOwnFault(gateway, exchange, error);
  const seconds = isCoded(error, 'HF_HTTP_BUDGET') ? error.details.seconds : undefined;
  exchange.send({
    status: seconds === undefined ? 503 : 429,
    body: { detail: `${what} ${remedy}` },
    headers: { 'retry-after': String(seconds ?? 5) },
  });
}

/** Logs a fault of the gateway itself. @returns the error that a client may see */
export function logOwnFault(
  { logger }: Pick<CallServices, 'logger'>,
  { correlation }: Pick<Exchange, 'correlation'>,
  cause: unknown,
): HoldfastError {
  const err = new KernelError('HF_INTERNAL', {}, { cause });
  logger.error({ err, correlation }, 'gateway.call_failed');
  return err;
}
