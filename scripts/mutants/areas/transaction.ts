import type { Area } from '../mutation.ts';

/** Where the promises are tested closest to the code; the other tests of an id take minutes. */
const NEAR = [
  'machines/router/',
  'router/transaction.test',
  'router/routes.test',
  'router/embedded/embedded-router',
  'router/commands/policy',
];

const area: Area = {
  sources: ['src/machines/router/', 'src/plugins/router/embedded/'],
  mutations: [
    {
      breaks: 'R6: the window is 240 s',
      id: 'R6',
      tests: NEAR,
      find: 'default(120_000)',
      put: 'default(240_000)',
    },
    {
      breaks: 'R6: the window of the machine is 240 s',
      id: 'R6',
      tests: ['machines/router'],
      find: 'windowMs: 120_000,',
      put: 'windowMs: 240_000,',
    },
    {
      breaks: 'R3: an outdated ncid is accepted',
      id: 'R3',
      tests: NEAR,
      find: ": refusal('HF_ROUTER_NCID_MISMATCH', 'ncid not match');",
      put: ': undefined;',
    },
    {
      breaks: 'R4: a bypass of the ncid raises no alert',
      id: 'R4',
      tests: NEAR,
      find: '?.ignoreNcid === true',
      put: '?.ignoreNcid === null',
    },
    {
      breaks: 'R10: anybody ends a transaction by any transID',
      id: 'R10',
      tests: NEAR,
      find: 'if (transID === $1?.transID) return undefined;',
      put: 'return undefined;',
    },
    {
      breaks: 'R10: a save is accepted while a transaction is pending',
      id: 'R10',
      tests: NEAR,
      find: "return refusal('HF_ROUTER_TRANSACTION_PENDING', $1);",
      put: 'return undefined;',
    },
    {
      breaks: 'R10: a commit after the window counts',
      id: 'R10',
      tests: NEAR,
      find: "?? refusal('HF_ROUTER_TRANSACTION_NONE', $1);",
      put: '?? undefined;',
    },
    {
      breaks: 'R10: a used transID begins a transaction again',
      id: 'R10',
      tests: NEAR,
      find: "$1 === 'append' && $2.includes($3)",
      put: 'false',
    },
    {
      breaks: 'R6: a revert applies what is in force already',
      id: 'R6',
      tests: NEAR,
      find: 'fingerprint: $1?.previous.fingerprint ?? $2.fingerprint,',
      put: 'fingerprint: $2.fingerprint,',
    },
    {
      breaks: 'R6: silence commits',
      id: 'R6',
      tests: NEAR,
      find: "{ target: 'expired.busy', actions: ['beginRevert', apply] },",
      put: "{ target: '#router-config.free', actions: 'commit' },",
    },
    {
      breaks: 'R6: a second append moves the point of return',
      id: 'R6',
      tests: NEAR,
      find: "'renew', 'activate', 'drop']",
      put: "'open', 'activate', 'drop']",
    },
    {
      breaks: 'R7: an apply that failed is answered with 200',
      id: 'R7',
      tests: NEAR,
      find: 'status: event.status, body: { errors:',
      put: 'status: 200, body: { errors:',
    },
    {
      breaks: 'R10: an append that the end of its window overtook is answered with success',
      tests: ['machines/router/config.test'],
      find: 'return $1?.late ?',
      put: 'return false ?',
    },
    {
      breaks: 'the queue of writes has no bound',
      tests: ['machines/router/config.test'],
      find: '$1.queue.length >= $1.queueLimit',
      put: 'false',
    },
    {
      breaks: 'R36: what is left of the window of another router begins anew',
      tests: ['machines/router/config.test', 'two-routers'],
      find: '$1.pending?.leftMs ?? $1.windowMs',
      put: '$1.windowMs',
    },
    {
      breaks: 'R36: a config that was changed in its store raises no alert',
      tests: ['machines/router/config.test'],
      find: "{ guard: '$2', target: 'adopting', actions: $1 },",
      put: "{ guard: '$2', target: 'adopting' },",
    },
    {
      breaks: 'R7: a revert that failed is not tried again',
      tests: ['machines/router/config.test'],
      find: "after: { retry: { target: 'busy', actions: ['beginRevert', $1] } },",
      put: '',
    },
    {
      breaks: 'R22: router explain says what the sets will hold, not what they hold',
      id: 'R22',
      tests: NEAR,
      find: 'const { populated: sets = {}, wanted = {} } = context ?? {};',
      put: 'const { wanted: sets = {}, wanted = {} } = context ?? {};',
    },
  ],
  automatic: {
    sources: [
      'src/machines/router/config',
      'src/plugins/router/embedded/config-writes.ts',
      'src/plugins/router/embedded/pending-transaction.ts',
    ],
    tests: [
      'machines/router/config.test',
      'machines/router/config.property',
      'router/transaction.test',
      'router/request',
      'router/embedded/api',
      'router/embedded/embedded-router',
      'router/embedded/pending-transaction',
    ],
  },
};

export default area;
