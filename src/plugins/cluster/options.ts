import { hostname } from 'node:os';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { insecureOption } from '../../core/host/http/plaintext.ts';
import { addressesProblem, plaintextServer } from './nats/servers.ts';

/** Subjects and stream names are made of it. */
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const NAME_PROBLEM = 'a name has at most 32 characters: a to z, 0 to 9, and - within';

/** @returns the name of this machine as a name in a cluster may be */
function ownName(): string {
  const name =
    hostname()
      .toLowerCase()
      .split('.')[0]
      ?.replace(/[^a-z0-9]+/g, '-')
      .slice(0, 32) ?? '';
  return name.replace(/^-+|-+$/g, '') || 'host';
}

const absoluteFile = z.string().min(1).refine(isAbsolute, 'an absolute path is wanted');

/** Options of several hosts that are one system (docs/cluster.md, "Settings"). Times are milliseconds. */
export const clusterOptions = z
  .strictObject({
    /**
     * The servers of NATS, all of them, separated by commas: `nats://host:4222`, or `tls://host:4222` for TLS. A secret if it contains a
     * password; then set it with the variable HOLDFAST_NATS_URL. One on this machine unless set.
     */
    servers: z
      .string()
      .superRefine((text, context) => {
        const message = addressesProblem(text);
        if (message !== undefined) context.addIssue({ code: 'custom', message });
      })
      .default('nats://127.0.0.1:4222'),
    /** Name of the cluster: several may share the servers of NATS. */
    name: z.string().regex(NAME, NAME_PROBLEM).default('holdfast'),
    /** Name of this host, which no other one of the cluster has. The name of the machine unless set. */
    host: z.string().regex(NAME, NAME_PROBLEM).default(ownName),
    /** File of mode 0600 with the key of the cluster, 32 bytes or more, the same on every host. */
    keyFile: absoluteFile.default('/etc/holdfast/cluster-key'),
    /** Credentials of a user of NATS, a file of mode 0600: `.creds`, or the seed of an nkey (`holdfast cluster nkey`). */
    credentialsFile: absoluteFile.optional(),
    tls: z
      .strictObject({
        /** Authority of the servers' certificates, where the system does not know it. */
        caFile: absoluteFile.optional(),
        /** Certificate of this host, for servers that want one. */
        certFile: absoluteFile.optional(),
        /** Its key, a file of mode 0600. */
        keyFile: absoluteFile.optional(),
      })
      .default({}),
    /** Allows plaintext to servers of NATS beyond this machine: on a network that is encrypted by other means. */
    insecure: insecureOption,
    /**
     * How long a host holds what it runs alone after it was last heard; from 1,000. An election of NATS takes up to 12 s: one that is to outlast
     * it has 15,000 or more.
     */
    leaseMs: z.int().min(1_000).max(600_000).default(15_000),
    /** Copies of each stream: 1, 3 or 5, at most as many as there are servers. Unless set: three where the servers of NATS are a cluster, else one. */
    replicas: z.union([z.literal(1), z.literal(3), z.literal(5)]).optional(),
    /** The most that the stream of one host may hold, bytes; from 16 MiB. When it is nearly full, the oldest records are removed from it. */
    maxStreamBytes: z
      .int()
      .min(16 * 1024 * 1024)
      .default(1024 * 1024 * 1024),
  })
  .superRefine(({ servers, insecure, tls }, context) => {
    if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
      context.addIssue({ code: 'custom', path: ['tls'], message: 'certFile and keyFile belong together' });
    }
    const server = insecure === true ? undefined : plaintextServer(servers, tls.caFile !== undefined);
    if (server === undefined) return;
    const message = `what the hosts tell each other would go to ${server} in plaintext: write tls://, or insecure: true`;
    context.addIssue({ code: 'custom', path: ['insecure'], message });
  });

export type ClusterOptions = z.output<typeof clusterOptions>;
