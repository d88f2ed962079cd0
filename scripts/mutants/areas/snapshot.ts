import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/memory/', 'src/plugins/memory/', 'src/plugins/memory-store/'],
  mutations: [
    { breaks: 'B1: the newest 15 are kept', id: 'B1', find: 'default(14)', put: 'default(15)' },
    {
      breaks: 'B1: one more is kept than configured',
      id: 'B1',
      find: '&& index >= keepNewest',
      put: '&& index > keepNewest',
    },
    { breaks: 'B1: at another hour', id: 'B1', find: "default('30 2 * * *')", put: "default('30 3 * * *')" },
    { breaks: 'B10: kept for 31 days', id: 'B10', find: 'default(30)', put: 'default(31)' },
    { breaks: 'B10: at another hour', id: 'B10', find: "default('0 4 * * *')", put: "default('0 5 * * *')" },
    { breaks: 'B10: 36 h are not stale', id: 'B10', find: 'default(26)', put: 'default(36)' },
    {
      breaks: 'B10: another usual size of a snapshot',
      id: 'B10',
      find: 'USUAL_SNAPSHOT_BYTES = 225_000',
      put: 'USUAL_SNAPSHOT_BYTES = 2_250_000',
    },
    {
      breaks: 'B10: another usual size of the volume',
      id: 'B10',
      find: 'USUAL_BYTES = 196_000_000',
      put: 'USUAL_BYTES = 1_960_000_000',
    },
    {
      breaks: 'B10: an unusual size is no finding',
      id: 'B10',
      find: 'return $1 !== undefined && ($2 > $1 * UNUSUAL_FACTOR || $2 < $1 / UNUSUAL_FACTOR);',
      put: 'return false;',
    },
    {
      breaks: 'B10: the age of the last good copy does not matter',
      id: 'B10',
      find: '$1.at > staleHours * $2',
      put: '$1.at > staleHours * $2 * 1_000',
    },
    {
      breaks: 'B8: nothing is stale',
      id: 'B8',
      find: '> $1.staleMs,',
      put: '> $1.staleMs * 1_000,',
    },
    {
      breaks: 'B8: a missed run is not noticed',
      id: 'B8',
      find: 'return $1 < due || $1 >',
      put: 'return $1 >',
    },
    {
      breaks: 'B8: a snapshot that the store does not list is good',
      id: 'B8',
      find: "{ guard: 'isNotListed', target: 'resting.failed', actions: ['noteFault', $1] },",
      put: '',
    },
    {
      breaks: 'B8: a run that failed raises no alert',
      id: 'B8',
      find: 'failed: { entry: $1.failed,',
      put: 'failed: {',
    },
    {
      breaks: 'B1: the last good one is pruned',
      tests: ['machines/memory'],
      find: '|| name === lastGood) return false;',
      put: ') return false;',
    },
    {
      breaks: 'B4: the exact count is not recorded',
      id: 'B4',
      tests: ['memory/backups', 'memory-store', 'memory/adapter'],
      find: 'body: { exact: true },',
      put: 'body: { exact: false },',
    },
    {
      breaks: 'B7: a deployment without a bucket is complete',
      id: 'B7',
      find: "'QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__BUCKET',",
      put: '',
    },
    {
      breaks: 'B7: snapshots on its own disk are good',
      id: 'B7',
      find: "($1 === $2[0] && value === 'local')",
      put: 'false',
    },
    {
      breaks: 'B1: another name of a snapshot',
      id: 'B1',
      find: '`${collection}-${id}-${at}.snapshot`',
      put: '`${collection}-${at}-${id}.snapshot`',
    },
    {
      breaks: 'a snapshot with another checksum is recovered',
      tests: ['memory-store/'],
      find: '$1 !== undefined && sha256 !== $1.toLowerCase()',
      put: 'false',
    },
    {
      breaks: 'a snapshot that lost its end is recovered',
      tests: ['memory-store/'],
      find: 'if (bytes !== found) invalid(',
      put: 'if (false) invalid(',
    },
    {
      breaks: 'a damaged snapshot is recovered',
      tests: ['memory-store/'],
      find: "if ($1 !== 'ok') invalid(",
      put: 'if (false) invalid(',
    },
    {
      breaks: 'a store fetches snapshots from any address',
      tests: ['memory-store/'],
      find: '|| !this.$1.recoverFrom().includes($2.origin)) {',
      put: ') {',
    },
    {
      breaks: 'a store reads snapshots from any folder',
      tests: ['memory-store/'],
      find: 'if (file.startsWith(`${own}/`) && ',
      put: 'if (',
    },
  ],
  automatic: {
    sources: [
      'src/machines/memory/',
      'src/plugins/memory/backups/',
      'src/plugins/memory/doctor.ts',
      'src/plugins/memory/rest-store.ts',
      'src/plugins/memory-store/snapshots.ts',
      'src/plugins/memory-store/jobs/',
    ],
    tests: ['machines/memory/', 'plugins/memory/', 'memory-store/'],
  },
};

export default area;
