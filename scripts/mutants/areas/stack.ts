import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/plugins/columnar/', 'src/plugins/collector/', 'src/machines/collector/'],
  mutations: [
    {
      breaks: 'O22: a query of the wrong table is answered with nothing',
      id: 'O22',
      find: "throw new ColumnarError('HF_COLUMNAR_WRONG_TABLE', {",
      put: 'void ({',
    },
    {
      breaks: 'O20: grouping by the raw target is answered',
      id: 'O20',
      find: "throw new ColumnarError('HF_COLUMNAR_RAW_TARGET', { query });",
      put: '',
    },
    {
      breaks: 'O20, O22: stack query does not look for mistakes',
      tests: ['columnar/'],
      find: 'await explainMistakes(',
      put: 'void (',
    },
    { breaks: 'O26: another native port', id: 'O26', find: 'NATIVE_PORT = 9000', put: 'NATIVE_PORT = 9001' },
    {
      breaks: 'O26: a native port that takes no connection is ok',
      id: 'O26',
      find: "return { state: 'warn', lookedAt, found: `the native port cannot be reached",
      put: "return { state: 'ok', lookedAt, found: `the native port cannot be reached",
    },
    {
      breaks: 'O9: the secret-sync object is not annotated',
      id: 'O9',
      find: 'const patch = { metadata: { annotations: { [$1]: String(at) } } };',
      put: 'const patch = {};',
    },
    {
      breaks: 'O9: what holds the old value is not restarted',
      id: 'O9',
      find: "spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': $1 } } } },",
      put: '',
    },
    {
      breaks: 'O9: producers have 30 min to refresh',
      id: 'O9',
      find: 'refreshMs: 900_000',
      put: 'refreshMs: 1_800_000',
    },
    {
      breaks: 'O9: the rotation is over while producers use the old key',
      id: 'O9',
      find: '$1.length === 0 && isProof',
      put: 'true',
    },
    {
      breaks: 'O25: otel_ingest_token is rotated',
      id: 'O25',
      find: 'if ($1.name === LEGACY_TOKEN) {',
      put: 'if (false) {',
    },
    {
      breaks: 'O25: another secret is rotated as the ingest key',
      id: 'O25',
      find: 'if ($1.name !== ROTATED) return',
      put: 'if (false) return',
    },
    ...(
      [
        [
          'admin_password',
          'whoever logs in with it is refused until it has the new one: Holdfast, dashboards, the UI',
        ],
        ['docdb_admin_password', 'the UI answers 5xx until it has the new one'],
        [
          'docdb_replicaset_keyfile',
          'members with different keys refuse one another: rotate all at once, with the UI down',
        ],
        ['ui_bootstrap_secret', 'signs everyone out of the UI once; the app is restarted by its restarter'],
        [
          'ui_oidc_client_secret',
          'nobody can log in to the UI until the identity provider has the same; its own code writes it',
        ],
        [
          'otel_ingest_api_key',
          'producers with the old key are refused; it is made by the UI, or by Holdfast where it is the collector, and cannot be planted beforehand',
        ],
        ['otel_ingest_token', 'never rotate, empty or delete it'],
        ['master_key', 'scripts that mint or revoke keys are refused until they have it; virtual keys go on'],
        ['claude_code_api_key', 'the workstation is refused until its clients have the new one'],
      ] as const
    ).map(([name, text]) => ({
      breaks: `O25: nothing follows when ${name} is rotated`,
      id: 'O25',
      find: `'${text}'`,
      put: "'nothing'",
    })),
    {
      breaks: 'O25: a placeholder is a secret',
      id: 'O25',
      find: "$1.name !== 'ui_oidc_client_secret' || !$2(value)",
      put: 'true',
    },
    {
      breaks: "O9: the UI's login is sent in plaintext to another host",
      tests: ['collector/rotation'],
      find: 'if (host !== undefined) return `a password is not',
      put: 'if (false) return `a password is not',
    },
    {
      breaks: 'O9: a page of the UI counts as its API',
      tests: ['collector/rotation'],
      find: "if (answer.ok && isObject(body) && typeof body.isTeamExisting === 'boolean') return base;",
      put: 'if (answer.ok) return base;',
    },
    {
      breaks: 'O9: a key that the UI refuses to its session counts as made',
      tests: ['collector/rotation'],
      find: 'if (status === 401 || status === 403) return',
      put: 'if (false) return',
    },
    {
      breaks: 'O9: a path that the UI does not have counts as a made key',
      tests: ['collector/rotation'],
      find: 'if (status === 404) return `the UI has no',
      put: 'if (status === 404) return undefined; if (false) return `the UI has no',
    },
    {
      breaks: "O9: the UI's API is looked for in one place only",
      tests: ['collector/rotation'],
      find: "const API_PATHS = ['/api', ''];",
      put: "const API_PATHS = [''];",
    },
    {
      breaks: 'O26: a version below the minimum is taken',
      tests: ['columnar/remote'],
      find: 'const isOld = Number(year) < leastYear ||',
      put: 'const isOld = false && Number(year) < leastYear ||',
    },
    {
      breaks: 'O26: a silent server is told as a slow query',
      tests: ['columnar/remote'],
      find: "if (this.kind === 'embedded') return new ColumnarError('HF_COLUMNAR_TIMEOUT'",
      put: "if (true) return new ColumnarError('HF_COLUMNAR_TIMEOUT'",
    },
    {
      breaks: 'O21: without a report no source has failed',
      id: 'O21',
      tests: ['columnar/questions'],
      find: 'if (failedSources.length === 0 && !hasRun) {',
      put: 'if (false) {',
    },
    {
      breaks: 'O29: the newest backup is ok though its file was not read',
      id: 'O29',
      tests: ['plugins/stale-checks'],
      find: "if (file?.state !== 'ok') {",
      put: "if (file?.state === 'unknown') {",
    },
  ],
  automatic: {
    sources: [
      'src/plugins/columnar/questions/',
      'src/plugins/columnar/reading/statement.ts',
      'src/machines/collector/',
      'src/plugins/collector/key-ring.ts',
      'src/plugins/collector/effective-config.ts',
    ],
    tests: [
      'machines/collector/',
      'plugins/collector/',
      'columnar/statement',
      'columnar/kept',
      'columnar/questions',
    ],
  },
};

export default area;
