import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { freePorts } from './nats.ts';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';
import { until } from './until.ts';

const FOLDER = new URL('../../deploy/nats/', import.meta.url);
const SERVERS = 3;

/** A user of NATS: what the server knows, and the file that a host has. */
export interface NatsUser {
  readonly publicKey: string;
  readonly seed: string;
  readonly file: string;
}

/** Makes a user as an nkey, its seed in a file of mode 0600. */
export function natsUser(dir: string, name: string): NatsUser {
  const pair = nkeys.createUser();
  const seed = Buffer.from(pair.getSeed()).toString('utf8');
  const file = join(dir, `${name}.nk`);
  writeFileSync(file, `${seed}\n`, { mode: 0o600 });
  return { publicKey: pair.getPublicKey(), seed, file };
}

export interface DeployedNats {
  /** The servers, separated by commas. */
  readonly urls: string;
  readonly ports: readonly number[];
  /** The authority of their certificates. */
  readonly caFile: string;
  /** What the servers logged. */
  logs(): string;
}

/**
 * Starts three servers with the files of deploy/nats as they are, but for addresses, folders and users, and certificates by
 * an authority of the test. They end with the test.
 *
 * @param accounts changes accounts.conf
 */
export async function startDeployedNats(t: Scope, accounts: (text: string) => string): Promise<DeployedNats> {
  const dir = tempDir(t);
  const ports = await freePorts(2 * SERVERS);
  const { caFile, certFile, keyFile } = issueCertificate(dir);
  const children: ChildProcess[] = [];
  const said: string[] = [];
  t.teardown(async () => {
    await Promise.all(
      children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }),
    );
  });
  const routes = ports
    .slice(SERVERS)
    .map((port, index) => [`nats-${index + 1}.example.net:6222`, port] as const);
  const logFiles = ports.slice(0, SERVERS).map((port, index) => {
    const home = join(dir, `nats-${index + 1}`);
    mkdirSync(join(home, 'nats'), { recursive: true });
    const logFile = join(home, 'log');
    const own: readonly (readonly [string, string])[] = [
      ...routes.map(([name, at]) => [name, `localhost:${at}`] as const),
      ['0.0.0.0:4222', `127.0.0.1:${port}`],
      ['0.0.0.0:6222', `127.0.0.1:${ports[SERVERS + index]}`],
      ['127.0.0.1:8222', '127.0.0.1:-1'],
      ['/etc/nats/server.crt', certFile],
      ['/etc/nats/server.key', keyFile],
      ['/etc/nats/ca.crt', caFile],
      ['/var/lib/nats', join(home, 'store')],
    ];
    const text = readFileSync(new URL('nats-server.conf', FOLDER), 'utf8');
    const conf = own.reduce((all, [from, to]) => {
      if (!all.includes(from)) throw new Error(`deploy/nats/nats-server.conf has no ${from}`);
      return all.replaceAll(from, to);
    }, text);
    writeFileSync(join(home, 'nats-server.conf'), conf);
    writeFileSync(
      join(home, 'nats/machine.conf'),
      `server_name: nats-${index + 1}\nlog_file: "${logFile}"\n`,
    );
    writeFileSync(
      join(home, 'nats/accounts.conf'),
      accounts(readFileSync(new URL('accounts.conf', FOLDER), 'utf8')),
    );
    const child = spawn('nats-server', ['-c', join(home, 'nats-server.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.on('data', (chunk) => said.push(String(chunk)));
    child.on('error', ({ message }) => said.push(message));
    children.push(child);
    return logFile;
  });
  const logs = () => [...said, ...logFiles.map(read)].join('\n');
  await until('three servers are ready', () => {
    const ended = children.find(({ exitCode }) => exitCode !== null);
    if (ended) throw new Error(`nats-server ended with ${ended.exitCode}: ${logs()}`);
    return logFiles.every((file) => /Server is ready/.test(read(file)));
  });
  await until('JetStream has a leader', () => /JetStream cluster new metadata leader/.test(logs()));
  const urls = ports.slice(0, SERVERS).map((port) => `tls://localhost:${port}`);
  return { urls: urls.join(','), ports: ports.slice(0, SERVERS), caFile, logs };
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-sha256'];
const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'pipe' });

/** @returns the file of its certificate; its key is beside it as `ca.key` */
export function makeCertificateAuthority(dir: string): string {
  const caFile = join(dir, 'ca.crt');
  const subject = ['-subj', '/CN=authority of a test', '-days', '30'];
  openssl('req', '-x509', ...EC, ...subject, '-keyout', join(dir, 'ca.key'), '-out', caFile);
  return caFile;
}

/** A certificate for `localhost` by an authority of its own. */
function issueCertificate(dir: string) {
  const caFile = makeCertificateAuthority(dir);
  const [certFile, keyFile, wish] = ['server.crt', 'server.key', 'server.csr'].map((name) =>
    join(dir, name),
  ) as [string, string, string];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  openssl('req', '-new', ...EC, ...names, '-keyout', keyFile, '-out', wish);
  const authority = ['-CA', caFile, '-CAkey', join(dir, 'ca.key'), '-days', '30'];
  openssl('x509', '-req', '-in', wish, ...authority, '-copy_extensions', 'copy', '-out', certFile);
  return { caFile, certFile, keyFile };
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
