// The kernel and the host know no feature: neither their code nor their comments may name what a plugin is about. Part of
// `npm run lint`; the contracts, which are named for the systems outside, may.
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readSource, sourceFiles } from './source.ts';

/** Words that belong to features, compared without case and as whole words or parts of a camelCase name. */
export const DOMAIN_WORDS = [
  'router',
  'reconciler',
  'ncid',
  'dhcp',
  'dnsmasq',
  'vlan',
  'wan',
  'ula',
  'networkConfig',
  'pppoe',
  'wireguard',
  'mcp',
  'gateway',
  'virtual key',
  'clickhouse',
  'columnar',
  'otlp',
  'hyperdx',
  'collector',
  'ingest key',
  'chdb',
  'watchdog',
  'kuma',
  'heartbeat',
  'nas',
  'ntfy',
  'alertmanager',
  'qdrant',
  'memory store',
  'velero',
  'restore drill',
]; // prettier-ignore

/** Words of others that only look like ours: an option of fastify. */
const ALLOWED = /routerOptions/g;

const pattern = new RegExp(
  DOMAIN_WORDS.map((word) => {
    const capital = word.charAt(0).toUpperCase() + word.slice(1);
    return `(?<![A-Za-z])(?:${word}|${capital}|${word.toUpperCase()})(?:s|es)?(?![a-z])|(?<=[a-z])${capital}(?![a-z])`;
  }).join('|'),
  'g',
);

/** @returns every place of a source that names a feature: the word and its line, from 1 */
export function domainWordsIn(source) {
  return [...source.replace(ALLOWED, (word) => '.'.repeat(word.length)).matchAll(pattern)].map((match) => ({
    word: match[0],
    line: source.slice(0, match.index).split('\n').length,
  }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
  let found = 0;
  for (const file of [...sourceFiles(root, 'src/core/kernel'), ...sourceFiles(root, 'src/core/host')]) {
    for (const { word, line } of domainWordsIn(readSource(root, file))) {
      found += 1;
      console.error(`${file}:${line} says "${word}": what belongs to a feature stands in its plugin`);
    }
  }
  if (found > 0) process.exitCode = 1;
  console.log(
    `words: ${found === 0 ? 'kernel and host name no feature' : `${found} words of features in kernel and host`}`,
  );
}
