// The image of deploy/, without a container engine, for the platform of this machine. `npm run image` packs the release
// and makes an OCI layout of it in build/image, with the root filesystem beside it.
//   node scripts/image.ts --release holdfast-0.2.0.tgz [--out build/image]
//   node scripts/image.ts --release /release.tgz --rootfs /rootfs           the root filesystem alone, for deploy/Dockerfile
// The last line is the image's digest, which `npm run image-manifests` writes into the manifests.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeLayout } from './image/oci.ts';
import { assembleRootfs } from './image/rootfs.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'build/image' },
    rootfs: { type: 'string' },
    release: { type: 'string', default: '' },
  },
});

try {
  if (!existsSync(values.release))
    throw new Error('A packed release is needed: npm pack, then --release <file>.');
  const rootfs = resolve(values.rootfs ?? join(values.out, 'rootfs'));
  await assembleRootfs({ target: rootfs, release: values.release });
  console.log(`root filesystem: ${rootfs}`);
  if (values.rootfs === undefined) {
    const { version } = JSON.parse(readFileSync(join(rootfs, 'opt/holdfast/package.json'), 'utf8'));
    const target = resolve(values.out, 'oci');
    const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? 0);
    const digest = await writeLayout({ rootfs, target, version, epoch });
    console.log(`OCI layout: ${target}, image ${version}`);
    console.log(digest);
  }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
