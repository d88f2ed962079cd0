import type { Area } from '../mutation.ts';

const LOG = 'test/core/kernel/log/';

/** Where the chain is tested closest to the code. */
const NEAR = [`${LOG}integrity`, `${LOG}log.test`, 'cli/log-files'];

const area: Area = {
  sources: ['src/core/kernel/log/'],
  mutations: [
    {
      breaks: 'C9: a record is chained to nothing',
      id: 'C9',
      tests: NEAR,
      find: "hash('sha256', previous + body, 'hex')",
      put: "hash('sha256', body, 'hex')",
    },
    {
      breaks: 'C9: the chain is not looked at',
      id: 'C9',
      tests: NEAR,
      find: '&& chainHash(previous, $1.body) !== $1.hash) {',
      put: '&& false) {',
    },
    {
      breaks: 'C9: a gap is no damage',
      id: 'C9',
      tests: NEAR,
      find: 'if ($1.seq !== expected) {',
      put: 'if (false) {',
    },
    {
      breaks: 'C9: columns may differ from the body',
      id: 'C9',
      tests: NEAR,
      find: 'if ($1.seq !== $2.seq || $1.actor !== $2.actor || $1.correlation !== $2.correlation) {',
      put: 'if (false) {',
    },
    {
      breaks: 'C9: time may go back',
      id: 'C9',
      tests: NEAR,
      find: 'if ($1.at < at) throw',
      put: 'if (false) throw',
    },
    {
      breaks: 'C9: a cause may be yet to come',
      id: 'C9',
      tests: NEAR,
      find: '&& $1.cause >= seq)',
      put: '&& false)',
    },
    {
      breaks: 'C9: an anchor of another log fits',
      id: 'C9',
      tests: NEAR,
      find: '$1?.seq === seq && $2.hashOf(seq) !== $1.hash) { throw bad(',
      put: 'false) { throw bad(',
    },
    {
      breaks: 'C9: saved states may differ from their digest',
      id: 'C9',
      tests: NEAR,
      find: 'if (digest === $1.digest) return true;',
      put: 'return true;',
    },
    {
      breaks: 'C9: what was signed may be written anew',
      id: 'C9',
      tests: NEAR,
      find: 'if (this.$1.hashOf(seq) !== hash) { const',
      put: 'if (false) { const',
    },
    {
      breaks: 'C9: any signature is genuine',
      id: 'C9',
      tests: NEAR,
      find: "return $1(null, $2(subject, seq, hash), $3, Buffer.from($4, 'base64url'));",
      put: 'return $1.length > 0;',
    },
    {
      breaks: 'C9: a log cut off behind its last signature is whole',
      id: 'C9',
      tests: NEAR,
      find: 'if ($1 > last) {',
      put: 'if (false) {',
    },
    {
      breaks: 'C9: a runtime starts on a log whose newest acknowledged record is another one',
      tests: [LOG],
      find: 'if ($1 && $2.hashOf($1.seq) !== $1.hash)',
      put: 'if (false)',
    },
    {
      breaks: 'C9: a runtime starts on a log whose newest signed record is another one',
      tests: [LOG],
      find: 'if ($1.hashOf($2.seq) !== $2.hash) $3(',
      put: 'if (false) $3(',
    },
    {
      breaks: 'C5: commits are not synced',
      tests: [LOG],
      find: 'PRAGMA synchronous = FULL',
      put: 'PRAGMA synchronous = OFF',
    },
    {
      breaks: 'C2: what waits is told durable before its commit',
      tests: [LOG],
      find: 'if (seq <= this.$1) return;',
      put: 'return;',
    },
    {
      breaks: 'C2: a batched record may wait for a second',
      id: 'C2',
      tests: [LOG],
      find: 'lingerMs = 50,',
      put: 'lingerMs = 1_000,',
    },
    {
      breaks: 'C5: a batch that is sent again is written twice',
      tests: [LOG],
      find: 'if (seq > head) {',
      put: 'if (true) {',
    },
    {
      breaks: 'C5: two processes write one folder',
      tests: [LOG, 'core/host/runtime'],
      find: "db.exec('BEGIN EXCLUSIVE');",
      put: "db.exec('BEGIN');",
    },
    {
      breaks: 'C5: a commit that failed is not tried again',
      tests: [LOG],
      find: '() => this.#postAgain())',
      put: '() => undefined)',
    },
    {
      breaks: 'C6: a shredded body keeps its key',
      id: 'C6',
      tests: [LOG],
      find: 'for (const [, at] of $1) writeWhole($2, Buffer.alloc(SLOT), at);',
      put: '',
    },
    {
      breaks: 'C6: deleted content is not overwritten',
      id: 'C6',
      tests: [LOG],
      find: 'PRAGMA secure_delete = ON;',
      put: 'PRAGMA secure_delete = OFF;',
    },
    {
      breaks: 'C10: pruning takes the record after too',
      tests: [LOG, 'retention'],
      find: '= to + 1;',
      put: '= to + 2;',
    },
    {
      breaks: 'C9: what was pruned is not signed',
      id: 'C9',
      tests: [LOG, 'retention'],
      find: "$1?.key === this.$2.key && $1 && $3('begin', $1)",
      put: '$1',
    },
  ],
  automatic: {
    sources: ['src/core/kernel/log/'],
    tests: [LOG, 'core/host/retention', 'core/host/runtime/runtime.test', 'fixtures/logs'],
    equivalent: [
      {
        find: 'let last = { seq: 0, at: 0 };',
        put: 'let last = { seq: 1, at: 0 };',
        because: 'every record overwrites it, and without a record the function throws',
      },
    ],
  },
};

export default area;
