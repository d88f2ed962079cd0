import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/reconciler/', 'src/plugins/reconciler/'],
  mutations: [
    {
      breaks: 'R24: the legs of the example config are those of a router elsewhere, too',
      id: 'R24',
      find: '(place === undefined ? exampleLegs : [])',
      put: 'exampleLegs',
    },
    {
      breaks: 'R24: a leg is written although nobody has adopted it',
      id: 'R24',
      find: 'if ($1 === undefined || $2.length === 0) return false;',
      put: 'return false;',
    },
    {
      breaks: 'R24: an adoption is also one of another list',
      id: 'R24',
      find: 'return [$1, ...legs.map(',
      put: 'return [$1, ...[].map(',
    },
    {
      breaks: 'R24: an adoption is also one of another router',
      id: 'R24',
      find: 'return [$1, ...legs.map(',
      put: 'return [...legs.map(',
    },
    {
      breaks: 'R24: a leg that has its address is written all the same',
      id: 'R24',
      find: "{ guard: 'present', target: '$1', actions: '$2' },",
      put: '',
    },
    {
      breaks: 'R24: the addresses that a leg has are overwritten',
      id: 'R24',
      find: 'ipv6: [...$1, $2.address]',
      put: 'ipv6: [$2.address]',
    },
    {
      breaks: 'R24: an ipv6 field that is a string counts as none',
      id: 'R24',
      find: "return ipv6 === '' ? [] : [ipv6];",
      put: 'return [];',
    },
    {
      breaks: 'R24: an interface of the list never may be listed',
      id: 'R24',
      find: '$1.never.includes($2)',
      put: 'false',
    },
    {
      breaks: 'R24: Guest and Telework may be listed by their labels',
      id: 'R24',
      find: "['guest', 'telework']",
      put: "['']",
    },
    {
      breaks: 'R24: the interfaces of Guest and Telework are not in the list never',
      id: 'R24',
      find: "default(['eth1.30', 'eth1.60'])",
      put: 'default([])',
    },
    {
      breaks: 'R25: a lost race is never counted',
      id: 'R25',
      find: "CONFLICT: { target: 'afterFailed', actions: 'fail' },",
      put: "CONFLICT: 'backingOff',",
    },
    {
      breaks: 'R25: it never gives up',
      id: 'R25',
      find: 'exhausted: ({ $1 }) => $1.tries >= $1.maxTries,',
      put: 'exhausted: () => false,',
    },
    {
      breaks: 'R25: it gives up silently',
      id: 'R25',
      find: "actions: [{ type: '$2', params: ({ $1 }) => gaveUp($1) }, { type: 'markAlerted', params: 'gave_up' }],",
      put: "actions: { type: 'markAlerted', params: 'gave_up' },",
    },
    { breaks: 'R25: fifty tries', id: 'R25', find: 'maxTries: 5,', put: 'maxTries: 50,' },
    {
      breaks: 'R26: an event is looked at after 25 s',
      id: 'R26',
      find: 'settleMs: 25,',
      put: 'settleMs: 25_000,',
    },
    {
      breaks: 'R24: no second look after an event',
      id: 'R24',
      find: "{ guard: '$1', target: 'checking' }, { target: 'lookingAtLink' },",
      put: "{ target: 'lookingAtLink' },",
    },
    {
      breaks: 'R25: a refused write counts as a lost race',
      id: 'R25',
      find: "failures: $1.failures + ($2.type === 'CONFLICT' ? 0 : 1),",
      put: 'failures: $1.failures,',
    },
    {
      breaks: 'R25: the events of a refused write hurry the next one',
      id: 'R25',
      find: "{ guard: 'heldBack', target: 'refused', actions: ['reached', 'markMissing', 'shortenPause'] },",
      put: '',
    },
    {
      breaks: 'R25: the first answer after an outage is no reason to look',
      id: 'R25',
      find: 'context.route(routerApiRecovered, legActor, ({ payload: { reason } }, $1) => toEveryLeg($1, { type: $2, reason } as const), );',
      put: '',
    },
    {
      breaks: 'R26: the link is not looked at',
      id: 'R26',
      find: "event.type === 'LINK_READ' && event.present,",
      put: "event.type === 'LINK_READ',",
    },
    {
      breaks: 'R26: a link that was not looked at is whole',
      id: 'R26',
      find: "if (link?.state === 'present') return 'whole';",
      put: "return 'whole';",
    },
    {
      breaks: 'R24: a name in the config refuses nothing',
      id: 'R24',
      find: "return typeof name === 'string' && isNeverTouched(name) ? name.trim() : undefined;",
      put: 'return undefined;',
    },
    {
      breaks: 'R37: a pending transaction counts as a failure',
      tests: ['machines/reconciler'],
      find: "PENDING: 'waiting',",
      put: "PENDING: { target: 'afterFailed', actions: 'fail' },",
    },
    {
      breaks: 'R24: an accepted write is trusted without reading',
      tests: ['machines/reconciler'],
      find: "ADDED: { target: 'verifying',",
      put: "ADDED: { target: 'afterPresent',",
    },
    { breaks: 'R27: a beat every 480 s', id: 'R27', find: 'idleMs: 240_000', put: 'idleMs: 480_000' },
    {
      breaks: 'the legs are read every 2,400 s',
      tests: ['reconciler/'],
      find: 'resyncMs: 240_000',
      put: 'resyncMs: 2_400_000',
    },
    {
      breaks: 'an endless burst of events keeps a leg from being read',
      tests: ['machines/reconciler'],
      find: 'MAX_EXTENSIONS = 20',
      put: 'MAX_EXTENSIONS = 2_000',
    },
    {
      breaks: 'R27: a beat that did not arrive is not sent again',
      id: 'R27',
      find: "failing: { after: { retry: 'pushing' },",
      put: 'failing: {',
    },
    {
      breaks: 'R27: events while a beat is sent get no beat',
      id: 'R27',
      find: "{ guard: '$1', target: '$2', actions: 'arrive' }, { target: 'quiet', actions: 'arrive' },",
      put: "{ target: 'quiet', actions: 'arrive' },",
    },
    {
      breaks: 'R28: the reconciler can be stopped for ever',
      tests: ['machines/reconciler/unit', 'reconciler/'],
      find: 'LONGEST_PAUSE_MS = 1_800_000',
      put: 'LONGEST_PAUSE_MS = 18_000_000_000',
    },
  ],
  automatic: {
    sources: [
      'src/machines/reconciler/',
      'src/plugins/reconciler/legs.ts',
      'src/plugins/reconciler/options.ts',
      'src/plugins/reconciler/router-access.ts',
    ],
    tests: [
      'machines/reconciler/',
      'plugins/reconciler/batching',
      'plugins/reconciler/heartbeat',
      'plugins/reconciler/legs',
      'plugins/reconciler/options',
      'plugins/reconciler/resync',
      'plugins/reconciler/status',
    ],
    equivalent: [
      {
        find: "stop: assign(({ event }) => { if (event.type !== 'PAUSE') return {};",
        put: 'stop: assign(({ event }) => { if (false) return {};',
        because: 'only a PAUSE leads to this action; the check is there for the type',
      },
    ],
  },
};

export default area;
