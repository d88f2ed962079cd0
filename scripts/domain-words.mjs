// The kernel and the host know no feature: neither their code nor their comments may name what a plugin is about. The
// kernel does not know the host either: no word of surfaces, HTTP or the vault. Part of `npm run lint`; the contracts, which
// are named for the systems outside, may name a feature.
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readSource, sourceFiles } from './source.ts';

const KERNEL = 'src/core/kernel';

/** Words that belong to features, compared without case and as whole words or parts of a camelCase name. */
const DOMAIN_WORDS = [
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

/** Words of the host, which the kernel below it may not say. */
const HOST_WORDS = ['http', 'vault', 'surface', 'socket', 'redis', 'token', 'browser', 'webhook'];

/** Words that only look like those: an option of fastify, and what tells two holders of a lease apart. */
const ALLOWED = /routerOptions|fencing ?[tT]oken/g;

const featurePattern = patternOf(DOMAIN_WORDS);
const kernelPattern = patternOf([...DOMAIN_WORDS, ...HOST_WORDS]);

function patternOf(words) {
  const alternatives = words.map((word) => {
    const capital = word.charAt(0).toUpperCase() + word.slice(1);
    return `(?<![A-Za-z])(?:${word}|${capital}|${word.toUpperCase()})(?:s|es)?(?![a-z])|(?<=[a-z])${capital}(?![a-z])`;
  });
  return new RegExp(alternatives.join('|'), 'g');
}

/** @returns every place of a source that says a word which its layer may not say: the word and its line, from 1 */
export function forbiddenWordsIn(file, source) {
  const pattern = file.startsWith(`${KERNEL}/`) ? kernelPattern : featurePattern;
  return [...source.replace(ALLOWED, (word) => '.'.repeat(word.length)).matchAll(pattern)].map((match) => ({
    word: match[0],
    line: source.slice(0, match.index).split('\n').length,
  }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
  let found = 0;
  for (const file of [...sourceFiles(root, KERNEL), ...sourceFiles(root, 'src/core/host')]) {
    for (const { word, line } of forbiddenWordsIn(file, readSource(root, file))) {
      found += 1;
      console.error(
        `${file}:${line} says "${word}": what belongs to a feature stands in its plugin, what serves requests in the host`,
      );
    }
  }
  if (found > 0) process.exitCode = 1;
  console.log(
    `words: ${found === 0 ? 'kernel and host name no feature, and the kernel no part of the host' : `${found} forbidden words`}`,
  );
}
