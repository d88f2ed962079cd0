import type { Area } from '../mutation.ts';

const area: Area = {
  sources: [
    'src/plugins/otlp/',
    'src/machines/otlp/',
    'src/plugins/collector/key-ring.ts',
    'src/plugins/collector/index.ts',
    'src/core/host/http/bounded-body.ts',
  ],
  mutations: [
    {
      breaks: 'O25: otel_ingest_token is admitted',
      id: 'O25',
      tests: ['otlp/'],
      find: "case 'legacyToken': return this.refuse(new OtlpError('HF_OTLP_KEY_LEGACY'));",
      put: "case 'legacyToken': return undefined;",
    },
    {
      breaks: 'O25: the key ring takes otel_ingest_token for a key',
      id: 'O25',
      tests: ['otlp/'],
      find: "return { kind: 'legacyToken' };",
      put: "return { kind: 'accepted', fingerprint };",
    },
    {
      breaks: 'O25: otel_ingest_token is any unknown key',
      tests: ['otlp/', 'collector/'],
      find: 'this.$1 = token === undefined ? undefined : this.$2(token);',
      put: 'this.$1 = undefined;',
    },
    {
      breaks: 'O2: any key is admitted',
      tests: ['otlp/'],
      find: "case 'unknown': return this.refuse(new OtlpError('HF_OTLP_KEY_UNKNOWN'));",
      put: "case 'unknown': return undefined;",
    },
    {
      breaks: 'O2: a key behind Bearer is admitted',
      tests: ['otlp/'],
      find: "case 'prefixed': return this.refuse(new OtlpError('HF_OTLP_KEY_PREFIXED'));",
      put: "case 'prefixed': return undefined;",
    },
    {
      breaks: 'O2: no key is told as an unknown one',
      tests: ['otlp/'],
      find: "=== undefined || $1.trim() === '') {",
      put: '=== null) {',
    },
    {
      breaks: 'O3: gRPC admits anybody',
      id: 'O3',
      find: 'if (refusal) return $1(refusal);',
      put: '',
    },
    {
      breaks: 'without keys anybody is admitted',
      tests: ['otlp/'],
      find: "case undefined: return this.refuse(new OtlpError('HF_OTLP_NO_KEYS'));",
      put: 'case undefined: return undefined;',
    },
    {
      breaks: 'O5: a client certificate is not demanded',
      id: 'O5',
      find: '(certificates, certificates, true)',
      put: '(certificates, certificates, false)',
    },
    {
      breaks: 'O5: renewed certificates wait for a restart',
      id: 'O5',
      find: 'setInterval(() => void this.$1(), this.$2)',
      put: 'setInterval(() => undefined, this.$2)',
    },
    {
      breaks: 'O4: an overload is 503',
      tests: ['otlp/'],
      find: '...(status === 429 && { retrySeconds: $1 }),',
      put: '',
    },
    {
      breaks: 'the memory for bodies has no bound',
      tests: ['otlp/'],
      find: 'if (this.$1 + more > this.$2) return false;',
      put: '',
    },
    {
      breaks: 'a body beyond its limit is read',
      tests: ['otlp/'],
      find: 'if (announced > limit) throw new BodyTooLarge(limit);',
      put: '',
    },
    {
      breaks: 'a body that grows beyond its limit is read',
      tests: ['otlp/'],
      find: "if (size > limit && $1 === 'refuse') throw new BodyTooLarge(limit);",
      put: '',
    },
    {
      breaks: 'what was refused of a body is not told',
      tests: ['otlp/'],
      find: 'refused === 0 ? {} : {',
      put: 'refused >= 0 ? {} : {',
    },
    {
      breaks: 'a database that is away is no alert',
      tests: ['machines/otlp'],
      find: 'patience: 60_000',
      put: 'patience: 60_000_000',
    },
    {
      breaks: 'a full spool is no alert',
      tests: ['machines/otlp'],
      find: "actions: ['block', { type: '$2', params: $1 }]",
      put: "actions: ['block']",
    },
    {
      breaks: 'a full spool goes on taking requests',
      tests: ['otlp/'],
      find: 'return reason === undefined ? undefined : this.refuse(',
      put: 'return reason !== null ? undefined : this.refuse(',
    },
  ],
  automatic: {
    sources: [
      'src/plugins/otlp/receive/',
      'src/machines/otlp/',
      'src/plugins/otlp/intake.ts',
      'src/plugins/otlp/spool/',
      'src/plugins/otlp/decode/',
    ],
    tests: [
      'machines/otlp/',
      'otlp/decode',
      'otlp/row-writer',
      'otlp/spool',
      'otlp/receive',
      'otlp/bounds',
      'otlp/faults',
    ],
  },
};

export default area;
