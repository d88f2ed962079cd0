import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { isObject } from '../../../core/kernel/json.ts';
import { type UpstreamAnswer, UpstreamFault } from '../fast-path/upstream-request.ts';
import { withoutToken } from '../issued/token-fault.ts';
import type { Message } from '../mcp/message.ts';
import { type Era, isStateless } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import { LONGEST_SESSION } from '../session/sealed-sessions.ts';
import type { ClientFacts } from '../upstream/client-facts.ts';
import { hasForgotten, isLate, isOwnFault } from '../upstream/failures.ts';
import { type CallOutcome, credentialWatch } from '../upstream/inspection.ts';
import { DISCOVER, OWN_ID, ownMessage, sessioned } from '../upstream/own-messages.ts';
import { type Heard, hear } from '../upstream/read-answer.ts';
import { askRoute, type ForUpstream } from '../upstream/request.ts';
import { bridgeFor, type Leg, type Legs, type OpenSession } from './sessions.ts';
import { Unavailable, whyNot } from './unavailable.ts';

export interface BranchOptions {
  /** As the aggregate shows it. */
  readonly route: Route;
  /** The client's. */
  readonly headers: IncomingHttpHeaders;
  readonly agent: Dispatcher;
  readonly legs: Legs;
  /** What tells callers apart who bring no session: the key's value, and the token that goes with it. */
  readonly caller: string;
  /** Id of the virtual key. */
  readonly key: string;
  /** None in the stateless revision, and while it begins. */
  readonly session: OpenSession | undefined;
  /** How long an upstream may keep the others waiting, milliseconds. */
  readonly deadlineMs: number;
  /** Aborted when the request has waited long enough for what its upstreams do one after the other. */
  readonly deadline: () => AbortSignal;
  /** Called once with what became of the request at this upstream, unless its fault says nothing of its health. */
  readonly ended: (outcome: CallOutcome['outcome'], method: string | undefined) => void;
  /** Called with a fault of the gateway itself, which the answer would only show as a missing upstream. */
  readonly failed: (error: unknown) => void;
}

type Sent = Pick<ForUpstream, 'method' | 'message' | 'signal'> & {
  readonly lastEventId?: string | undefined;
  /** The answer has to come within the deadline of the request, and whatever has to be done for it. */
  readonly isBounded?: true;
};

/**
 * One upstream as a request to the aggregate sees it: its session is opened when there is none, and again when it is
 * gone.
 */
export class Branch {
  readonly route: Route;
  readonly #options: BranchOptions;
  #hasEnded = false;

  constructor(options: BranchOptions) {
    this.route = options.route;
    this.#options = options;
  }

  /**
   * Passes a client's request on. An upstream that has restarted refuses it for its session, and so did nothing: only
   * then the request is made again, in a new session.
   */
  async ask(given: Sent): Promise<UpstreamAnswer> {
    const { legs } = this.#options;
    const session = this.#options.session ?? (await this.#bridge());
    if (!session) return this.#send(undefined, given);
    const sent = this.#options.session
      ? given
      : { ...given, message: given.message && sessioned(given.message) };
    const leg =
      (await legs.current(session, this.route.name)) ??
      (await legs.renew(session, this.route.name, undefined, () => this.#reopen(session, this.within())));
    const answer = await this.#send(leg, sent);
    // The answer of a call may have taken longer than anything else is given.
    const late = given.isBounded ? this.within() : AbortSignal.timeout(this.#options.deadlineMs);
    if (!(await this.#isGone(leg, answer.statusCode, late))) return answer;
    void answer.body.dump();
    return this.#send(
      await legs.renew(session, this.route.name, leg, () => this.#reopen(session, late)),
      sent,
    );
  }

  /** @returns why there is no token for the upstream, as a predicate; undefined where there is one, or none is needed */
  async whyWithoutToken(stop: AbortSignal): Promise<string | undefined> {
    try {
      const fault = await this.route.issued?.prepare(this.within(stop));
      return fault && `is ${withoutToken(fault)}`;
    } catch (error) {
      if (stop.aborted) throw error;
      return whyNot(error);
    }
  }

  /** Whether the client knows no sessions and the upstream nothing else. */
  async isBridged(): Promise<boolean> {
    return !this.#options.session && (await this.#bridge()) !== undefined;
  }

  /** A request whose answer the gateway reads itself; never throws. */
  async request(message: Message, stop: AbortSignal): Promise<Heard> {
    const body = { ...message.body, id: OWN_ID };
    const signal = this.within(stop);
    const isBounded = true;
    try {
      const heard = await hear(
        await this.ask({ method: 'POST', message: { ...message, id: OWN_ID, body }, signal, isBounded }),
        OWN_ID,
        credentialWatch(this.route),
      );
      this.ended('ok', message.method);
      return heard;
    } catch (error) {
      if (!stop.aborted) this.#failed(error, message.method);
      return { reason: whyNot(error) };
    }
  }

  /**
   * Passes on a notification or an answer, to a session that is there: another one would not know what it is about.
   * What an upstream makes of it, nobody hears.
   */
  async notify(message: Message, stop: AbortSignal): Promise<void> {
    const { session, legs } = this.#options;
    const leg = session && (await legs.current(session, this.route.name));
    if (session && !leg) return;
    await this.#quietly(leg, { method: 'POST', message }, stop);
  }

  async close(stop: AbortSignal): Promise<void> {
    const { session, legs } = this.#options;
    const leg = session && (await legs.current(session, this.route.name));
    if (leg && leg.id !== '') {
      await this.#quietly(leg, { method: 'DELETE', message: undefined }, stop);
    }
  }

  /**
   * Begins a session with the upstream.
   *
   * @returns it, and what the upstream said of itself
   * @throws Unavailable
   */
  async open(
    { version, ...client }: ClientFacts,
    stop: AbortSignal,
  ): Promise<{ readonly leg: Leg; readonly result: Readonly<Record<string, unknown>> }> {
    const initialize = ownMessage('initialize', { protocolVersion: version, ...client }, OWN_ID);
    let heard: Heard;
    try {
      heard = await hear(
        await this.#send({ id: '', version }, { method: 'POST', message: initialize, signal: stop }),
        OWN_ID,
      );
    } catch (error) {
      this.#failed(error, 'initialize');
      throw new Unavailable(whyNot(error), { cause: error });
    }
    if ('reason' in heard) throw new Unavailable(heard.reason);
    const { result } = heard.message;
    if (!isObject(result)) throw new Unavailable('refuses to initialize');
    const id = String(heard.headers['mcp-session-id'] ?? '');
    if (id.length > LONGEST_SESSION) throw new Unavailable('names a session too long to keep');
    const leg = { id, version: String(result.protocolVersion ?? version).slice(0, 32) };
    // It is a header of all that is sent from here on.
    if (!/^[\x20-\x7e]*$/.test(leg.version)) throw new Unavailable('names a revision that is none');
    await this.#quietly(
      leg,
      { method: 'POST', message: ownMessage('notifications/initialized', undefined) },
      stop,
    );
    return { leg, result };
  }

  async #isGone(leg: Leg, status: number, signal: AbortSignal): Promise<boolean> {
    if (leg.id === '') return false;
    const ping = (message: Message) => this.#send(leg, { method: 'POST', message, signal });
    return hasForgotten(status, ping);
  }

  /** @returns for a client without sessions, the one kept for it with an upstream that knows nothing else */
  async #bridge(): Promise<OpenSession | undefined> {
    const { legs, caller } = this.#options;
    const era = await legs.eraOf(this.route, () => this.#probe());
    return era === 'sessions' ? bridgeFor(caller) : undefined;
  }

  /** @returns the newest kind of revision that the upstream speaks; undefined when it would not say */
  async #probe(): Promise<Era | undefined> {
    const signal = this.within();
    const answer = await this.#send(undefined, { method: 'POST', message: DISCOVER, signal });
    const { statusCode: status } = answer;
    const heard = await hear(answer, OWN_ID);
    if (status === 401 || status === 403 || status >= 500) return undefined;
    const result = 'message' in heard && isObject(heard.message.result) ? heard.message.result : {};
    const { supportedVersions: versions } = result;
    return Array.isArray(versions) && versions.some(isStateless) ? 'stateless' : 'sessions';
  }

  async #reopen({ state: { version, client } }: OpenSession, stop: AbortSignal): Promise<Leg> {
    return (await this.open({ version, ...(client ?? { capabilities: {}, clientInfo: {} }) }, stop)).leg;
  }

  async #quietly(
    leg: Leg | undefined,
    sent: Pick<Sent, 'method' | 'message'>,
    stop: AbortSignal | undefined,
  ): Promise<void> {
    const signal = this.within(stop);
    try {
      const { body } = await this.#send(leg, { ...sent, signal });
      void body.dump();
    } catch (error) {
      if (!stop?.aborted) this.report(error); // the other upstreams and the client go on without it
    }
  }

  #send(leg: Leg | undefined, { lastEventId, ...sent }: Sent): Promise<UpstreamAnswer> {
    const { agent, headers, key } = this.#options;
    const changed: IncomingHttpHeaders = {
      ...headers,
      'last-event-id': lastEventId,
      ...(leg && { 'mcp-protocol-version': leg.version }),
    };
    return askRoute(agent, this.route, { ...sent, key, headers: changed, session: leg?.id || undefined });
  }

  /** Reports an error, unless it is the upstream's. */
  report(error: unknown): void {
    if (isOwnFault(error) && !(error instanceof RangeError)) this.#options.failed(error);
  }

  /** Aborted when the others have waited long enough for this upstream, or with `stop`. */
  within(stop?: AbortSignal): AbortSignal {
    const late = this.#options.deadline();
    return stop ? AbortSignal.any([stop, late]) : late;
  }

  /** Says what became of the request at this upstream; the first time counts. */
  ended(outcome: CallOutcome['outcome'], method: string | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.ended(outcome, method);
  }

  #failed(error: unknown, method: string | undefined): void {
    this.report(error);
    const isAway = !(isOwnFault(error) || error instanceof UpstreamFault);
    if (isLate(error)) this.ended('timed_out', method);
    else if (isAway) this.ended('unreachable', method);
  }
}
