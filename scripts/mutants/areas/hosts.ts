import { type Area, noticedBy } from '../mutation.ts';

/** What hosts of a cluster hear of each other, and what those outside of it see of them. */
const area: Area = {
  sources: [
    'src/core/host/http/surface.ts',
    'src/machines/collector/ingest-key.ts',
    'src/machines/gateway/',
    'src/machines/router/config',
    'src/plugins/collector/keys-everywhere.ts',
    'src/plugins/collector/shared-key.ts',
    'src/plugins/console/health.ts',
    'src/plugins/gateway/',
    'src/plugins/router/',
  ],
  mutations: [
    ...noticedBy(
      ['gateway/streams'],
      [
        {
          breaks: 'G23: an answer of a server in this process that broke off cannot be taken up',
          find: 'eventStore: events,',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['gateway/hosts-cut-off'],
      [
        {
          breaks: 'G14: a host that is cut off makes keys whose values nobody waits for any more',
          find: 'if (this.#gateway.cutOffMs() > DECISION_MS / 2) throw',
          put: 'if (false) throw',
        },
      ],
    ),
    ...noticedBy(
      ['machines/collector/ingest-key', 'collector/shared-key'],
      [
        {
          breaks: 'C13: a rotation waits for no producer of the key that a host had before it joined',
          find: 'const keys = isOld ? new Set([key, ...this.#ring.leaving]) : [key];',
          put: 'const keys = [key];',
        },
        {
          breaks: 'C13: a rotation of the ingest key that another host knows of is no news',
          find: "isNews: ({ context, event }) => event.type === 'HEARD' && isNews(context, event.keys),",
          put: 'isNews: () => false,',
        },
        {
          breaks: 'C13: a host that hears of a key in force hears nothing of the one before it',
          find: 'event.keys.previous !== undefined && isNews(context, event.keys)',
          put: 'false',
        },
        {
          breaks: 'C13: a key that is heard of is not put in force',
          find: "{ guard: 'isNewsOfOverlap', target: '.overlap', actions: [store, 'hear'] }",
          put: "{ guard: 'isNewsOfOverlap', target: '.overlap', actions: [store] }",
        },
        {
          breaks: 'C13: a key that is heard of is not stored',
          find: "actions: [store, 'hear'] }, { guard: 'isNews'",
          put: "actions: ['hear'] }, { guard: 'isNews'",
        },
        {
          breaks: 'C13: a host tells the others no ingest keys',
          find: 'if (!isNews(known, heard)) return undefined;',
          put: 'return undefined;',
        },
        {
          breaks: 'C13: a key of an overlap that is heard of does not admit',
          find: 'return { order, current, previous, retired };',
          put: 'return { order, current, retired };',
        },
        {
          breaks: 'C13: an older key that a stale host tells of comes back',
          find: 'return heard.order > own.order || (heard.order === own.order && heard.current > own.current);',
          put: 'return heard.order !== own.order;',
        },
      ],
    ),
    ...noticedBy(
      ['gateway/hosts-routes', 'machines/gateway/routes', 'gateway/tool-pins'],
      [
        {
          breaks: 'C13: a rollback that another host knows of is not heard',
          find: 'if (news.length === 0) return undefined;',
          put: 'return undefined;',
        },
        {
          breaks: 'C13: a rollback that is heard of does not serve',
          find: "guard: 'isNews', actions: ['hear', serve()]",
          put: "guard: 'isNews', actions: ['hear']",
        },
        {
          breaks: 'C13: a rollback that is heard of is about any entry',
          find: 'return heard.source === known.source && heard.order',
          put: 'return heard.order',
        },
        {
          breaks: 'C13: a rollback that was taken back is heard of again',
          find: '&& heard.order > (known.rollback?.order ?? 0);',
          put: ';',
        },
        {
          breaks: 'C13: hosts tell of no rollback',
          find: 'rollbacks: Object.fromEntries(told), changed',
          put: 'rollbacks: {}, changed',
        },
        {
          breaks: 'C13: a rollback holds although the entry has changed',
          find: 'if (rollback?.source !== source || serving',
          put: 'if (!rollback || serving',
        },
        {
          breaks: 'C13: a rollback of an entry that is read later is forgotten',
          find: 'known?.rollback?.source === source ? { rollback: known.rollback } : {}',
          put: '{}',
        },
        {
          breaks: 'C13: a rollback that could not be followed is not noted',
          find: "actions: [replyImpossible(), 'noteRollback', 'note']",
          put: "actions: [replyImpossible(), 'note']",
        },
        {
          breaks: 'C13: a rollback that comes again is one more',
          find: "{ guard: 'isKnown' }, { guard: 'rollbackPossible'",
          put: "{ guard: 'rollbackPossible'",
        },
        {
          breaks: 'C13: a host that never served a definition says nothing of it',
          find: 'if (!rollback || serving?.fingerprint === rollback.fingerprint) return undefined;',
          put: 'return undefined;',
        },
        {
          breaks: 'C13: tools that a person accepted are not heard of',
          find: '!agreed || agreed.order <= order) return undefined;',
          put: 'agreed) return undefined;',
        },
        {
          breaks: 'C13: hosts tell of no accepted tools',
          find: '...(agreed && { agreed }), changed',
          put: 'changed',
        },
        {
          breaks: 'C13: what a person accepts is not noted for hosts that are away',
          find: "actions: [reply(200), 'accept', 'note',",
          put: "actions: [reply(200), 'accept',",
        },
        {
          breaks: 'C13: an acceptance that comes again accepts what is there by then',
          find: "ACCEPTED: [ { guard: 'isKnown' }, { guard: 'isAsSeen'",
          put: "ACCEPTED: [ { guard: 'isAsSeen'",
        },
        {
          breaks: 'C13: an acceptance is good for other tools than those that were looked at',
          find: '(event.digest === undefined || event.digest === context.pending?.digest)',
          put: 'true',
        },
        {
          breaks: 'C13: tools that were accepted before this host sees them are asked for again',
          find: "actions: [reply(409), 'expect'] }, ] } } }",
          put: 'actions: [reply(409)] }, ] } } }',
        },
      ],
    ),
    ...noticedBy(
      ['machines/gateway/ended-sessions', 'gateway/ended-sessions', 'gateway/hosts.test'],
      [
        {
          breaks: 'C13: an ended session is not heard of',
          find: "return isNews(ours, heard.ended) ? { type: 'HEARD', from, ended: heard.ended } : undefined;",
          put: 'return undefined;',
        },
        {
          breaks: 'C13: an ended session is forgotten with the process',
          find: 'return Object.hasOwn(ended, session); } /**',
          put: 'return false; } /**',
        },
        {
          breaks: 'C13: sessions that are heard of are not kept',
          find: "HEARD: { guard: 'isNews', actions: 'keep' }",
          put: "HEARD: { guard: 'isNews' }",
        },
        {
          breaks: 'C13: a host that stops keeps ended sessions back',
          find: 'this.#cancel?.(); this.#publish();',
          put: 'this.#cancel?.();',
        },
        {
          breaks: 'C13: each ended session is a message of its own',
          find: 'if (!this.#cancel) this.#tell();',
          put: 'this.#tell();',
        },
        {
          breaks: 'C13: of many ended sessions the newest are forgotten',
          find: 'otherAt - at ||',
          put: 'at - otherAt ||',
        },
      ],
    ),
    ...noticedBy(
      ['gateway/hosts-approvals', 'gateway/hosts-cut-off'],
      [
        {
          breaks: 'C13: a denial stands on its own host alone',
          find: 'this.#sameAs(wanted.digest) ? undefined : await this.#others?.denied(wanted.digest)',
          put: 'undefined',
        },
        {
          breaks: 'C13: whatever stands elsewhere counts as denied',
          find: "return same?.value === 'denied' ? same : undefined;",
          put: 'return same;',
        },
        {
          breaks: 'C13: a host says of no call that it was denied',
          find: 'return denial && { approvals: [denial] };',
          put: 'return undefined;',
        },
        {
          breaks: 'C13: a host looks for a denial of any call',
          find: 'place.context.digest === digest);',
          put: 'digest);',
        },
        {
          breaks: 'C13: what hosts say of calls for approval is readable for everybody',
          find: 'return said && this.#seal(said);',
          put: 'return said && Buffer.from(JSON.stringify(said)).toString();',
        },
        {
          breaks: 'C13: what another host says unsealed is taken',
          find: "return JSON.parse(this.#vault.open(Buffer.from(String(sealed), 'base64'), QUESTION));",
          put: "try { return JSON.parse(this.#vault.open(Buffer.from(String(sealed), 'base64'), QUESTION)); } catch { return JSON.parse(JSON.stringify(sealed)); }",
        },
        {
          breaks: 'C13: all requests for approval go into one answer',
          find: 'if (part.length > 0 && bytes > MOST_BYTES) break;',
          put: '',
        },
        {
          breaks: 'C13: requests for approval beyond one answer are not asked for',
          find: 'if (next !== undefined) from[host] = next;',
          put: '',
        },
        {
          breaks: 'C13: an approved call is carried out on a host that is cut off',
          find: 'const cutOff = this.#others?.refusal(called.route.entry.writes === true);',
          put: 'const cutOff = undefined as Verdict | undefined;',
        },
      ],
    ),
    ...noticedBy(
      ['machines/gateway/key'],
      [
        {
          breaks: 'C13: a value that ended at once is good on a host whose clock is behind',
          find: 'if (hasEnded || at >= until)',
          put: 'if (at >= until)',
        },
        {
          breaks: 'C13: a rotation without an overlap ends nothing at once',
          find: 'const isOver = hasEnded || overlapMs === undefined;',
          put: 'const isOver = hasEnded;',
        },
        {
          breaks: 'C13: a value that has ended comes back with the next rotation',
          find: 'const isOver = hasEnded || overlapMs === undefined;',
          put: 'const isOver = overlapMs === undefined;',
        },
        {
          breaks: 'C13: open calls with a value that ended go on while a clock is behind',
          find: 'overlapMs === undefined ? 0 : at + overlapMs;',
          put: 'at + (overlapMs ?? 0);',
        },
      ],
    ),
    ...noticedBy(
      ['console/health', 'console/console.slow'],
      [
        {
          breaks: 'C13,C14: /readyz does not ask the plugins',
          find: "...reasonsOf(vitals.reports, ({ ready }) => ready === false, 'is not ready')",
          put: '',
        },
        {
          breaks: 'C13,C14: /readyz answers 200 whatever it found',
          find: 'reasons.length === 0 ? 200 : 503',
          put: '200',
        },
        {
          breaks: 'C13,C14: /readyz does not read what plugins report',
          find: 'notReady({ ...vitals(services), reports: services.health() })',
          put: 'notReady(vitals(services))',
        },
      ],
    ),
    ...noticedBy(
      ['core/host/http/drain'],
      [
        {
          breaks: 'C13: a surface that stops resets what is on its way',
          find: 'await onItsWay(app);',
          put: '',
        },
        {
          breaks: 'C13: a surface that stops does not wait for what is on its way',
          find: 'if (open > 0) await setTimeout(LINGER_MS);',
          put: '',
        },
        {
          breaks: 'C13: a surface that stops answers as ever',
          find: 'if (requests.draining.aborted) {',
          put: 'if (false) {',
        },
        {
          breaks: 'C13: a surface that stops does not say when to try again',
          find: "if (coded.code === 'HF_HTTP_STOPPING') reply.header('retry-after', '1');",
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['router/remote/fencing', 'machines/router/'],
      [
        {
          breaks: 'C13: the router takes a write of an earlier holder',
          find: 'if (!fence || fence.number >= (fences[fence.singleton] ?? 0)) return undefined;',
          put: 'return undefined;',
        },
        {
          breaks: 'C13: the holder itself is refused by the router',
          find: 'fence.number >= (fences[fence.singleton] ?? 0)) return undefined;',
          put: 'fence.number > (fences[fence.singleton] ?? 0)) return undefined;',
        },
        {
          breaks: 'C13: the router keeps no fencing token',
          find: 'noteFence: assign(({ context, event }) => withFence(context, event)),',
          put: 'noteFence: assign(() => ({})),',
        },
        {
          breaks: 'C13: one fencing token is for all singletons',
          find: '[fence.singleton]: fence.number',
          put: 'all: fence.number',
        },
        {
          breaks: 'C13: an earlier fencing token takes the place of a later one',
          find: 'if (!fence || fence.number <= (fences[fence.singleton] ?? 0)) return {};',
          put: 'if (!fence) return {};',
        },
        {
          breaks: 'C13: a fencing token that is not understood is none',
          find: 'if (singleton === undefined) throw',
          put: 'if (singleton === undefined) return undefined; if (false) throw',
        },
        {
          breaks: 'C13: a write to a remote router bears no fencing token',
          find: 'return fence ? { [HEADER]: `${fence.singleton} ${fence.token}` } : {};',
          put: 'return {};',
        },
        {
          breaks: 'C13: reapplications of several holders share one answer',
          find: 'return writer.fence ? this.#applyOnce(writer, 1) : this.#reapplies.add(writer);',
          put: 'return this.#reapplies.add(writer);',
        },
        {
          breaks: 'C13: the newest fencing tokens are forgotten first',
          find: 'all.sort(([, one], [, other]) => other - one)',
          put: 'all.sort(([, one], [, other]) => one - other)',
        },
      ],
    ),
    ...noticedBy(
      ['machines/gateway/key.test', 'gateway/hosts.test'],
      [
        {
          breaks: 'C13: a host that is behind serves reads for its grace',
          find: "? { rule: isBehind ? 'host_behind' : 'host_isolated'",
          put: "? { rule: 'host_isolated'",
        },
      ],
    ),
    {
      breaks: 'C13: a rotation without an overlap is one of no length, which a clock decides',
      find: '...(overlapMs > 0 && { overlapMs })',
      put: 'overlapMs',
      tests: ['gateway/hosts.test', 'gateway/admin.test'],
    },
  ],
  automatic: {
    sources: [
      'src/machines/gateway/route-table.ts',
      'src/machines/gateway/ended-sessions.ts',
      'src/machines/collector/ingest-key.ts',
    ],
    tests: [
      'machines/gateway/routes',
      'gateway/hosts-routes',
      'gateway/hosts.test',
      'gateway/ended-sessions',
      'collector/shared-key',
    ],
  },
};

export default area;
