import { randomBytes } from 'node:crypto';
import { unlessAborted } from '../../../core/host/deadline.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { ActorSnapshot } from '../../../core/kernel/actors/transition.ts';
import type { approval } from '../../../machines/gateway/approval.ts';
import type { ForwardParams, Verdict } from '../../../machines/gateway/call-shapes.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { keyActor } from '../keys/virtual-keys.ts';
import { plainRefusal, toolError, toolRefusal } from '../mcp/answers.ts';
import { INVALID_REQUEST, rpcError } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { eraOf } from '../mcp/protocol.ts';
import { KEY_ENDED, stopped } from '../upstream/failures.ts';
import type { CallOutcome } from '../upstream/inspection.ts';
import { approvalActor } from './actor.ts';
import {
  denied,
  progressEvent,
  progressTokenOf,
  TAKEN,
  TOO_MANY,
  TOO_MANY_OF_KEY,
  whyNot,
} from './client-texts.ts';
import { type NewRequest, newRequest, type ToolForApproval } from './new-request.ts';
import { ParkedExchange } from './parked-exchange.ts';

/** How often a client that waits hears something: its own patience, and that of proxies, ends after some silence. */
const SAY_EVERY_MS = 10_000;
const PURPOSE = 'gateway.approval';
const CANCELLED: unique symbol = Symbol('the client cancelled its request');
/** States in which the same call belongs to a request that is there. */
const STANDING = ['waiting', 'approved', 'denied'];

/** Limits of the operator's. */
export interface ApprovalLimits {
  /** How long a person has, and how long a denial stands, milliseconds. */
  readonly deadlineMs: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerKey: number;
}

/** A call that may have to wait. */
export interface HeldCall {
  exchange: Exchange;
  readonly key: AuthenticatedKey;
  readonly message: Message | undefined;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

type Place = ActorSnapshot<typeof approval>;

/** One request in one place. */
interface Standing {
  readonly place: string;
  readonly id: string;
}

/** A call that a person denied on another host. */
interface DeniedCall {
  readonly id: string;
  readonly decision?: { readonly by: string; readonly why: string };
}

/** What the other hosts of a cluster mean for a call. */
interface OtherHosts {
  /**
   * Whether this host may carry out now what was admitted earlier.
   *
   * @param writes whether its route may change something
   * @returns why not; undefined when it may
   */
  refusal(writes: boolean): Verdict | undefined;
  /** @param digest of the call @returns the request in which another host has denied the same call */
  denied(digest: string): Promise<DeniedCall | undefined>;
}

type ApprovalServices = Pick<Services, 'actors' | 'clock' | 'log' | 'vault'>;

/**
 * Holds calls until a person approves them. What is asked and decided is the state of actors, so that it outlasts the client's
 * connection and this process; held in memory are only the connections that wait.
 */
export class Approvals {
  readonly #services: ApprovalServices;
  readonly #limits: ApprovalLimits;
  readonly #others: OtherHosts | undefined;
  /** Who waits, by the id of the request. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Calls that wait, by the request of their client. */
  readonly #parked = new Map<string, HeldCall>();

  /** @param others undefined without a cluster */
  constructor(services: ApprovalServices, limits: ApprovalLimits, others?: OtherHosts) {
    this.#services = services;
    this.#limits = limits;
    this.#others = others;
  }

  /**
   * Has a call wait until a person has decided, and carries it out if it is approved and no other call took the approval.
   *
   * @param params of its decision
   * @param carryOut asks the upstream
   */
  async hold(
    call: HeldCall,
    called: ToolForApproval,
    params: ForwardParams,
    carryOut: () => Promise<CallOutcome>,
  ): Promise<CallOutcome> {
    const { message, exchange, key } = call;
    if (message?.kind !== 'request' || message.id === undefined) {
      exchange.send(rpcError(400, null, INVALID_REQUEST, 'Invalid Request: tools/call without an id'));
      return { outcome: 'answered', refusal: 'no_id' };
    }
    const wanted = newRequest(
      called,
      { key, message, headers: exchange.headers },
      params,
      this.#services.vault,
    );
    const standing = await this.#standing(wanted, exchange.correlation);
    if ('refusal' in standing) return refuse(call, standing.text, standing.refusal);
    const parked = new ParkedExchange(exchange, message.id);
    call.exchange = parked;
    const found = await this.#decided(call, message, parked, standing);
    if (found === CANCELLED) {
      parked.endUnanswered();
      return { outcome: 'cancelled' };
    }
    if (call.signal.aborted) {
      this.#withdrawIfRevoked(call, called, standing);
      return stopped(parked, call.signal, true);
    }
    if (found?.value !== 'approved') return refuse(call, ...whyNot(found, standing.id));
    // While it waited, the upstream may have changed what the tool does.
    if (!called.route.tools.offers(called.tool)) {
      call.exchange.send(
        toolRefusal(message.id, { rule: 'tool_not_allowed', revision: params.revision }, era(call)),
      );
      return { outcome: 'answered', refusal: 'tool_not_allowed' };
    }
    // While it waited, this host may have been cut off: then it would not know that the key was revoked.
    const cutOff = this.#others?.refusal(called.route.entry.writes === true);
    const refusal = cutOff && plainRefusal({ ...cutOff, revision: params.revision }, message);
    if (cutOff && refusal) {
      call.exchange.send(refusal);
      return { outcome: 'answered', refusal: cutOff.rule };
    }
    return this.#carryOutOnce(call, standing, () => {
      parked.endWait();
      return carryOut();
    });
  }

  /** A client says that it does not wait any more: its call ends, and the request goes on. */
  cancelled(notification: HeldCall): void {
    if (this.#parked.size === 0) return;
    const { requestId } = (notification.message?.body.params ?? {}) as { requestId?: unknown };
    this.#parked.get(clientRequest(notification, requestId))?.abort(CANCELLED);
  }

  /** Something became of a request: those who wait for it look. */
  wake(id: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    for (const look of waiting ?? []) look();
  }

  /** @returns the number of calls that wait for a request at present */
  waitersOf(id: string): number {
    return this.#waiting.get(id)?.size ?? 0;
  }

  /** All places that were ever asked in. */
  places(): readonly Place[] {
    const { actors } = this.#services;
    const places: Place[] = [];
    for (let number = 1; ; number += 1) {
      const place = actors.get(approvalActor, String(number));
      if (!place) return places.filter(({ context }) => context.request);
      places.push(place);
    }
  }

  /** @returns the place with a request, which may be over */
  find(id: string): Place | undefined {
    return this.places().find(({ context }) => context.request?.id === id);
  }

  /** @returns the request of a call that was denied, while the denial stands */
  denied(digest: string): Place | undefined {
    const same = this.#sameAs(digest);
    return same?.value === 'denied' ? same : undefined;
  }

  /** @returns the arguments as a person sees them; undefined when the request is over */
  shownArguments({ context: { digest } }: Place): string | undefined {
    const { log, vault } = this.#services;
    const sealed = digest === undefined ? undefined : log.blob(digest);
    return sealed && vault.open(sealed, PURPOSE);
  }

  /** @returns the request that the same call belongs to, or a new one; or why there can't be one */
  async #standing(
    { shown, ...wanted }: NewRequest,
    correlation: string,
  ): Promise<Standing | { readonly text: string; readonly refusal: string }> {
    const { actors, clock, vault } = this.#services;
    const elsewhere = this.#sameAs(wanted.digest) ? undefined : await this.#others?.denied(wanted.digest);
    if (elsewhere) {
      const [text, refusal] = denied(elsewhere.decision, elsewhere.id);
      return { text, refusal };
    }
    const places = this.places();
    const standing = places.filter(isStanding);
    const same = this.#sameAs(wanted.digest);
    if (same) return { place: same.key, id: same.context.request?.id ?? '' };
    const { maxWaiting, maxWaitingPerKey, deadlineMs } = this.#limits;
    const ofKey = standing.filter(({ context }) => context.request?.key === wanted.key).length;
    if (ofKey >= maxWaitingPerKey) return TOO_MANY_OF_KEY;
    if (standing.length >= maxWaiting) return TOO_MANY;
    const at = clock.now();
    const id = randomBytes(5).toString('hex');
    const place = freePlace(places, standing);
    const request = { id, ...wanted };
    const record = await actors
      .send(
        approvalActor,
        place,
        { type: 'ASKED', at, until: at + deadlineMs, request },
        { correlation, blobs: new Map([[wanted.digest, vault.seal(shown, PURPOSE)]]) },
      )
      .durable();
    return record.ignored ? TOO_MANY : { place, id };
  }

  /** @returns the request that a call belongs to, which waits or was decided */
  #sameAs(digest: string): Place | undefined {
    return this.places().find((place) => isStanding(place) && place.context.digest === digest);
  }

  /** Waits while nobody has decided. */
  async #decided(
    call: HeldCall,
    message: Message,
    parked: ParkedExchange,
    { place, id }: Standing,
  ): Promise<Place | typeof CANCELLED | undefined> {
    const name = clientRequest(call, message.id);
    this.#parked.set(name, call);
    const silence = this.#sayThatItWaits(message, parked, place, id);
    try {
      for (;;) {
        const now = this.#services.actors.get(approvalActor, place);
        const state = now?.context.request?.id === id ? now : undefined;
        if (state?.value !== 'waiting') return state;
        await this.#next(id, call.signal);
      }
    } catch (error) {
      if (error === CANCELLED) return CANCELLED;
      if (call.signal.aborted) return undefined;
      throw error;
    } finally {
      silence();
      if (this.#parked.get(name) === call) this.#parked.delete(name);
    }
  }

  /** Waits until something becomes of a request. @throws the signal's reason */
  async #next(id: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(resolve));
    try {
      await unlessAborted(promise, signal);
    } finally {
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    }
  }

  /** Says at intervals that the call waits: by progress where the client asked for it, else by a comment. @returns ends it */
  #sayThatItWaits(message: Message, parked: ParkedExchange, place: string, id: string): () => void {
    const { actors, clock } = this.#services;
    const token = progressTokenOf(message);
    let cancel = () => {};
    const say = () => {
      const left = Math.ceil(((actors.get(approvalActor, place)?.context.until ?? 0) - clock.now()) / 1_000);
      parked.say(token === undefined ? ': waits for approval\n\n' : progressEvent(token, id, left));
      cancel = clock.after(SAY_EVERY_MS, say);
    };
    if (token === undefined) cancel = clock.after(SAY_EVERY_MS, say);
    else say();
    return () => cancel();
  }

  /** Takes the approval, durably before the upstream is asked: after a crash no call takes it again. */
  async #carryOutOnce(
    call: HeldCall,
    { place, id }: Standing,
    carryOut: () => Promise<CallOutcome>,
  ): Promise<CallOutcome> {
    const { actors, clock } = this.#services;
    const { correlation } = call.exchange;
    const event = { type: 'CLAIMED', at: clock.now(), id, call: correlation } as const;
    const { from, to } = await actors.send(approvalActor, place, event, { correlation }).durable();
    if (from !== 'approved' || to.value !== 'used') return refuse(call, ...TAKEN);
    const outcome = call.signal.aborted ? undefined : await carryOut();
    if (outcome === undefined || outcome.outcome === 'unreachable') {
      actors.send(approvalActor, place, { ...event, type: 'RETURNED', at: clock.now() }, { correlation });
    }
    return outcome ?? stopped(call.exchange, call.signal, true);
  }

  /** Nobody need decide about a call whose key may not make it any more. */
  #withdrawIfRevoked(call: HeldCall, { route }: ToolForApproval, { place, id }: Standing): void {
    const { actors, clock } = this.#services;
    if (call.signal.reason !== KEY_ENDED) return;
    const { terms, revokedAt } = actors.get(keyActor, call.key.id)?.context ?? {};
    const mayCall = revokedAt === undefined && !terms?.blocked && terms?.servers.includes(route.name);
    if (mayCall) return;
    const reason = 'its key may not call it any more';
    actors.send(approvalActor, place, { type: 'WITHDRAWN', at: clock.now(), id, reason });
  }
}

const isStanding = ({ value }: Place): boolean => STANDING.includes(String(value));

/** A place whose request is over, or a new one; else one whose approval was used. */
function freePlace(places: readonly Place[], standing: readonly Place[]): string {
  const taken = new Set(standing.map(({ key }) => key));
  const over = places.find(({ key, value }) => !taken.has(key) && value !== 'used');
  const used = places.find(({ key, value }) => !taken.has(key) && value === 'used');
  return (over ?? used)?.key ?? String(places.length + 1);
}

const era = ({ exchange, message }: HeldCall) => eraOf(exchange.headers, message);

/** Which request of which client: ids of requests are unique within a session. */
const clientRequest = ({ key, exchange }: HeldCall, id: unknown): string =>
  `${key.id} ${exchange.headers['mcp-session-id'] ?? exchange.correlation} ${JSON.stringify(id)}`;

function refuse(call: HeldCall, text: string, refusal: string): CallOutcome {
  call.exchange.send(toolError(call.message?.id ?? null, text, era(call)));
  return { outcome: 'answered', refusal };
}
