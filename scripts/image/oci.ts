/** An OCI image layout of one layer, written without a container engine; the same bytes from the same tree. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { START } from './rootfs.ts';

export interface LayoutOptions {
  /** The root filesystem. */
  readonly rootfs: string;
  /** Folder of the layout. */
  readonly target: string;
  /** Version of the release: the name of the image in the layout. */
  readonly version: string;
  /** Seconds since 1970 that all files and the image say they were made at. */
  readonly epoch: number;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** @returns the digest by which a registry that takes this image will name it, `sha256:…` */
export async function writeLayout({ rootfs, target, version, epoch }: LayoutOptions): Promise<string> {
  const blobs = join(target, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const put = (mediaType: string, content: object): Descriptor => {
    const text = JSON.stringify(content);
    const digest = createHash('sha256').update(text).digest('hex');
    writeFileSync(join(blobs, digest), text);
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) };
  };
  const { layer, diffId } = await writeLayer(rootfs, blobs, epoch);
  const created = new Date(epoch * 1_000).toISOString().replace('.000', '');
  const config = put('application/vnd.oci.image.config.v1+json', {
    created,
    architecture: ARCHITECTURES[process.arch],
    os: 'linux',
    config: {
      User: START.user,
      Env: Object.entries(START.env).map(([name, value]) => `${name}=${value}`),
      Entrypoint: START.entrypoint,
      WorkingDir: START.workingDir,
      Labels: { 'org.opencontainers.image.title': 'holdfast', 'org.opencontainers.image.version': version },
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created, created_by: 'scripts/image.ts' }],
  });
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = put(mediaType, { schemaVersion: 2, mediaType, config, layers: [layer] });
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': version } };
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [named],
  };
  writeFileSync(join(target, 'index.json'), JSON.stringify(index));
  writeFileSync(join(target, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return manifest.digest;
}

/** GNU tar in a fixed order, with fixed times and owners, compressed. */
async function writeLayer(rootfs: string, blobs: string, epoch: number) {
  const tar = spawn(
    'tar',
    [
      ...['--create', '--sort=name', '--format=gnu', '--numeric-owner', '--owner=0', '--group=0'],
      ...[`--mtime=@${epoch}`, '--directory', rootfs, '.'],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise<number | null>((resolve, reject) => tar.on('close', resolve).on('error', reject));
  const [plain, packed] = [createHash('sha256'), createHash('sha256')];
  let size = 0;
  const seePlain = new PassThrough().on('data', (chunk: Buffer) => plain.update(chunk));
  const seePacked = new PassThrough().on('data', (chunk: Buffer) => {
    packed.update(chunk);
    size += chunk.length;
  });
  const file = join(blobs, 'layer');
  await pipeline(tar.stdout, seePlain, createGzip({ level: 6 }), seePacked, createWriteStream(file));
  if ((await ended) !== 0) throw new Error('tar could not read the root filesystem.');
  const digest = packed.digest('hex');
  renameSync(file, join(blobs, digest));
  const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip';
  const layer: Descriptor = { mediaType, digest: `sha256:${digest}`, size };
  return { layer, diffId: `sha256:${plain.digest('hex')}` };
}
