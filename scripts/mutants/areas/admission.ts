import type { Area } from '../mutation.ts';

/** Where the promises are tested closest to the code; the other tests of an id take minutes. */
const NEAR = [
  'gateway/calls',
  'gateway/key-id',
  'gateway/misplaced-keys',
  'gateway/admin',
  'core/host/http/',
];

const area: Area = {
  sources: ['src/plugins/gateway/', 'src/machines/gateway/', 'src/core/host/http/'],
  mutations: [
    {
      breaks: 'G3: a key without "Bearer " is admitted',
      id: 'G3',
      tests: NEAR,
      find: '/^Bearer (',
      put: '/^(?:Bearer )?(',
    },
    {
      breaks: 'G3: Authorization stands in for the key header',
      id: 'G3',
      tests: NEAR,
      find: '= headers[KEY_HEADER];',
      put: '= headers[KEY_HEADER] ?? headers.authorization;',
    },
    {
      breaks: 'G25: the master key on an MCP route is any unknown key',
      id: 'G25',
      tests: NEAR,
      find: "if ($1.isMaster($2)) return { rule: 'master_key_presented' };",
      put: '',
    },
    {
      breaks: 'G9: a virtual key in Authorization is no key at all',
      id: 'G9',
      tests: NEAR,
      find: "=== 'virtual_key' ? 'key_only_in_authorization' : 'no_key'",
      put: "=== undefined ? 'no_key' : 'no_key'",
    },
    {
      breaks: 'G9: a header that holds a key reaches the upstream',
      id: 'G9',
      tests: NEAR,
      find: 'for (const $1 of $2) delete headers[$1];',
      put: '',
    },
    {
      breaks: 'G9: a key in the URL is not found',
      id: 'G9',
      tests: NEAR,
      find: 'return $1 ? [...$2, $1] : $2;',
      put: 'return $2;',
    },
    {
      breaks: 'G14: every virtual key opens the admin endpoints',
      id: 'G14',
      tests: NEAR,
      find: "$1.kind !== 'master'",
      put: 'false',
    },
    {
      breaks: 'G14: the master key reads /key/info',
      id: 'G14',
      tests: NEAR,
      find: "if ($1.kind === 'master') return $2(request, reply, gateway, { rule: 'virtual_key_wanted' });",
      put: "if ($1.kind === 'master') return {};",
    },
    {
      breaks: 'G19: every value of the same length is the master key',
      id: 'G19',
      tests: NEAR,
      find: '$1.length === $2.length && timingSafeEqual($1, $2)',
      put: '$1.length === $2.length',
    },
    {
      breaks: 'G9: a scanner floods people with alerts',
      id: 'G9',
      tests: NEAR,
      find: 'ALERT_EVERY_MS = 60_000',
      put: 'ALERT_EVERY_MS = 0',
    },
    {
      breaks: 'G9: what a limiter rejected together counts as one',
      tests: ['gateway/rejection-limiter', 'gateway/admin-admission', 'gateway/misplaced-keys'],
      find: '($1.count ?? 1)',
      put: '1',
    },
    {
      breaks: 'G25: the master key in some header of an MCP call is told as a virtual key',
      id: 'G25',
      tests: NEAR,
      find: "if ($1.some(($2) => $3.isMaster($2))) return 'master_key';",
      put: '',
    },
    {
      breaks: 'C14: a surface with a token takes requests without it',
      id: 'C14',
      tests: NEAR,
      find: "throw new HostError('HF_HTTP_UNAUTHORIZED');",
      put: '',
    },
    {
      breaks: 'C14: a page elsewhere can point its name at this machine',
      id: 'C14',
      tests: NEAR,
      find: "throw new HostError('HF_HTTP_HOST');",
      put: ';',
    },
    {
      breaks: 'C14: a page elsewhere can post here',
      id: 'C14',
      tests: NEAR,
      find: "if (origin !== undefined && !isOwnOrigin(origin, host, rules)) throw new HostError('HF_HTTP_ORIGIN');",
      put: '',
    },
    {
      breaks: 'C2: a refused call is batched',
      id: 'C2',
      tests: ['gateway/calls'],
      find: "$1.type === 'CALL' && onlyForwarded &&",
      put: "$1.type === 'CALL' &&",
    },
    {
      breaks: 'C2: a call that may write is batched',
      id: 'C2',
      tests: ['gateway/calls'],
      find: '&& $1.writes !== true',
      put: '',
    },
  ],
  automatic: {
    sources: [
      'src/machines/gateway/rejections.ts',
      'src/core/host/http/admission.ts',
      'src/plugins/gateway/keys/caller.ts',
      'src/plugins/gateway/keys/misplaced-keys.ts',
      'src/plugins/gateway/keys/virtual-keys.ts',
      'src/plugins/gateway/calls/rejection-limiter.ts',
      'src/plugins/gateway/http/',
    ],
    tests: [
      'machines/gateway/rejections',
      'core/host/http/admission',
      'plugins/write-routes',
      'core/host/http/surface',
      'gateway/admin-admission',
      'gateway/calls',
      'gateway/key-id',
      'gateway/misplaced-keys',
      'gateway/rejection-limiter',
      'gateway/admin.test',
    ],
    equivalent: [
      {
        find: "const reason = reasonOf($1); if (reason === undefined || $1.type !== 'REJECTED') return {};",
        put: 'const reason = reasonOf($1); if (false) return {};',
        because: 'this action runs behind the guard mustAlert only, which has made the same check',
      },
    ],
  },
};

export default area;
