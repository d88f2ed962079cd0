// `npm run image-manifests`: copies of deploy/*.yaml that name the published image by its digest, to be applied.
//   npm run image-manifests -- ghcr.io/you/holdfast@sha256:…        [--out build/manifests]
//   npm run image-manifests -- --metadata image.json                what `docker buildx build --metadata-file` has written
// A tag is refused: it can be moved, and the jobs that run tomorrow would not be those that were tried.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const deploy = fileURLToPath(new URL('../deploy/', import.meta.url));
/** Registry and path, which must name a registry, then the digest. */
const PINNED = /^[a-z0-9][a-z0-9.-]*(?::\d+)?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}$/;
const PLACEHOLDER = /^(\s*(?:- )?image:) ''$/gm;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: 'build/manifests' }, metadata: { type: 'string' } },
});

try {
  const image = values.metadata === undefined ? (positionals[0] ?? '') : imageOf(values.metadata);
  if (!PINNED.test(image)) {
    throw new Error(
      `An image by its digest is needed, <registry>/<name>@sha256:<64 digits>, not "${image}".\n` +
        'What to do: publish the image (deploy/README.md) and give the digest that the registry has for it.',
    );
  }
  const out = resolve(values.out);
  mkdirSync(out, { recursive: true });
  for (const name of readdirSync(deploy).filter((file) => file.endsWith('.yaml'))) {
    const text = readFileSync(join(deploy, name), 'utf8');
    const pinned = text.replace(PLACEHOLDER, `$1 ${image}`);
    if (pinned === text) throw new Error(`deploy/${name} has no line "image: ''" that could be pinned.`);
    writeFileSync(join(out, name), pinned);
    console.log(join(out, name));
  }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

/** @throws Error the file is none of buildx, or says nothing of a push */
function imageOf(file: string): string {
  const { 'image.name': name = '', 'containerimage.digest': digest = '' } = JSON.parse(
    readFileSync(file, 'utf8'),
  );
  // Of several names the first; without its tag, which a digest replaces.
  return `${String(name)
    .split(',')[0]
    ?.replace(/:[^:/]*$/, '')}@${digest}`;
}
