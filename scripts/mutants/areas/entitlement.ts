import type { Area } from '../mutation.ts';

/** Where the promises are tested closest to the code; the other tests of an id take minutes. */
const NEAR = [
  'machines/gateway/',
  'gateway/admin',
  'gateway/challenge',
  'gateway/misplaced-keys',
  'gateway/aggregate.test',
];

const area: Area = {
  sources: ['src/machines/gateway/', 'src/plugins/gateway/'],
  mutations: [
    {
      breaks: 'G5: a key reaches routes outside of its scope',
      id: 'G5',
      tests: NEAR,
      find: "return { rule: 'not_entitled' };",
      put: '{}',
    },
    {
      breaks: 'G27: the allow-list of tools is not looked at',
      id: 'G27',
      tests: NEAR,
      find: "($1.tools && !$1.tools.includes($2.tool ?? ''))",
      put: 'false',
    },
    {
      breaks: 'G27: the list of tools shows those outside of the allow-list',
      id: 'G27',
      tests: NEAR,
      find: '...($1?.tools && { tools: $1.tools }),',
      put: '',
    },
    {
      breaks: 'G14: a revoked key is admitted',
      id: 'G14',
      tests: NEAR,
      find: "return { rule: 'revoked' };",
      put: '{}',
    },
    {
      breaks: 'G14: an expired key is admitted',
      id: 'G14',
      tests: NEAR,
      find: "return { rule: 'expired' };",
      put: '{}',
    },
    {
      breaks: 'G14: a key is good for one millisecond more',
      id: 'G14',
      tests: NEAR,
      find: '&& $1 >= $2.expiresAt',
      put: '&& $1 > $2.expiresAt',
    },
    {
      breaks: 'G14: a value that was rotated out is good for ever',
      id: 'G14',
      tests: NEAR,
      find: 'hasEnded || $1 >= until',
      put: 'false',
    },
    {
      breaks: 'G16: one call more than rpm_limit',
      id: 'G16',
      tests: NEAR,
      find: '$1.calls >= $2.rpmLimit',
      put: '$1.calls > $2.rpmLimit',
    },
    {
      breaks: 'G16: the call that exceeds the budget is admitted',
      id: 'G16',
      tests: NEAR,
      find: '$1(spend, cost) > $2.maxBudget',
      put: 'spend > $2.maxBudget',
    },
    {
      breaks: 'G16: what was spent is not counted',
      id: 'G16',
      tests: NEAR,
      find: '&& { spend: $1(spend, $2.cost) }',
      put: '&& {}',
    },
    {
      breaks: 'G16: a call that never reached its upstream is charged',
      id: 'G16',
      tests: NEAR,
      find: 'if (!cost || reached)',
      put: 'if (true)',
    },
    {
      breaks: 'G8: a relay route admits without the identity of the caller',
      id: 'G8',
      tests: NEAR,
      find: "return { rule: 'identity_required' };",
      put: '{}',
    },
    {
      breaks: 'G9: a virtual key is relayed as if it were a token',
      id: 'G9',
      tests: NEAR,
      find: "return { rule: 'key_misplaced' };",
      put: '{}',
    },
    {
      breaks: 'G25: a call that carries the master key too is admitted',
      id: 'G25',
      tests: NEAR,
      find: "return { rule: 'master_key_misplaced' };",
      put: '',
    },
    {
      breaks: 'G27: a restricted key reads /key/info',
      id: 'G27',
      tests: NEAR,
      find: "return { rule: 'restricted' };",
      put: '{}',
    },
    {
      breaks: 'G16: one open call more than max_parallel',
      id: 'G16',
      tests: NEAR,
      find: 'openCount < limit',
      put: 'openCount <= limit',
    },
    {
      breaks: 'G12: the aggregate reaches routes outside of the scope',
      id: 'G12',
      tests: NEAR,
      find: '$1.filter(($2) => $3?.servers.includes($2))',
      put: '$1',
    },
    {
      breaks: 'G14: the open calls of a revoked key go on',
      id: 'G14',
      tests: NEAR,
      find: '=== undefined && !$1?.blocked ? ($1?.servers ?? []) : []',
      put: '=== undefined && !$1?.blocked ? ($1?.servers ?? []) : ($1?.servers ?? [])',
    },
  ],
  automatic: {
    equivalent: [
      {
        find: 'const setBack = at < window.at;',
        put: 'const setBack = at <= window.at;',
        because:
          'in the very millisecond in which the window began, a window that begins now with the same calls is the same',
      },
    ],
    sources: [
      'src/machines/gateway/key',
      'src/machines/gateway/route',
      'src/plugins/gateway/routes/route.ts',
    ],
    tests: [
      'machines/gateway/key.test',
      'machines/gateway/route-health',
      'machines/gateway/routes.test',
      'machines/gateway/key.property',
      'gateway/limits',
      'gateway/admin.test',
      'gateway/aggregate.test',
      'gateway/protocol',
      'gateway/health',
    ],
  },
};

export default area;
