import type { PushAnswer } from '../../core/contracts/uptime.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { CLUSTER_PATH, type ClusterStatus } from './cluster-status.ts';
import { answerLines, pingOf, sendManualPush, statusOf } from './manual-push.ts';
import type { UptimeOptions } from './options.ts';

const BEAT = {
  down: 'a probe; Uptime Kuma takes it for a beat that says down',
  up: 'a beat that says up',
} as const;

interface Check {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
}

/** `holdfast push doctor`: finds out step by step why beats do not arrive (O23). */
export const pushDoctor = (options: UptimeOptions): CommandDefinition => ({
  name: 'push doctor [monitor]',
  summary: 'Finds out why beats do not arrive: one push, its body, then three checks in order',
  example: 'holdfast push doctor clickstack-watchdog',
  flags: [
    {
      flags: '--status <status>',
      summary: 'of the push; up only if you know that all is well',
      default: 'down',
    },
    { flags: '--with-ping <ms>', summary: 'the ping that is sent', default: '0' },
    { flags: '--namespace <name>', summary: 'of the stack in the cluster', default: 'clickstack' },
    { flags: '--manifests', summary: 'prints the two throwaway pods instead, and pushes nothing' },
    {
      flags: '--image <image>',
      summary: 'of pod A; the image of the scheduled job where the cluster can be read',
    },
    { flags: '--capture-image <image>', summary: 'of pod B', default: 'docker.io/curlimages/curl:8.10.1' },
    { flags: '--url <url>', summary: 'the monitor as pods reach it; HOLDFAST_UPTIME_URL unless given' },
  ],
  async run([monitor = 'clickstack-watchdog'], flags, command) {
    const namespace = String(flags.namespace);
    const cluster = await askCluster(command, namespace);
    if (flags.manifests === true) {
      command.print(await printed(options, monitor, flags, namespace, cluster));
      return 0;
    }
    const ping = pingOf(flags.withPing, 'push doctor');
    const status = statusOf(flags.status, 'push doctor');
    // A beat with the status up would hide an unhealthy stack for minutes.
    const beat = { status, msg: 'push doctor', ping, probe: status === 'down' };
    const { place, answer, headers } = await sendManualPush(options, command, monitor, beat);
    const checks: Check[] = [
      active(answer, monitor),
      synced(cluster),
      { check: 'ping', state: 'ok', found: `${ping} is a non-negative integer` },
    ];
    const parity = answer.kind === 'failed' ? answer.reason : `HTTP ${answer.status}`;
    const advice = adviceOf(answer);
    if (command.json) {
      command.print(JSON.stringify({ monitor, place, status, parity, headers, answer, checks, advice }));
    } else {
      const lines = [
        `1. parity: one push to ${place} (${BEAT[status]}): ${parity}`,
        ...headers.map((header) => `     ${header}`),
        '2. body, as it came:',
        ...answerLines(answer).map((line) => `     ${line}`),
        '3. in this order:',
        ...checks.map(({ check, state, found }) => `     ${state.padEnd(4)} ${check}: ${found}`),
        ...(advice === undefined ? [] : [advice]),
      ];
      for (const line of lines) command.print(line);
    }
    return answer.kind === 'delivered' ? 0 : 1;
  },
});

async function printed(
  options: UptimeOptions,
  monitor: string,
  flags: Readonly<Record<string, unknown>>,
  namespace: string,
  { image }: ClusterStatus,
): Promise<string> {
  const jobImage = typeof flags.image === 'string' ? flags.image : image;
  const url = typeof flags.url === 'string' ? flags.url : options.url;
  const refuse = (reason: string): never => {
    throw new HostError('HF_CLI_USAGE', { reason, command: 'push doctor' });
  };
  if (jobImage === undefined) {
    return refuse(
      'The image of the scheduled job is not known, because the cluster cannot be read. Give --image.',
    );
  }
  if (url === undefined || !/^https?:\/\/[\w.:[\]-]+(?:\/[\w./-]*)?$/.test(url)) {
    return refuse(
      'The address at which pods reach the monitor is not known. Give --url, e.g. --url http://uptime:3001.',
    );
  }
  return manifests({ monitor, namespace, url, jobImage, captureImage: String(flags.captureImage) });
}

/** A 404 alone says nothing about the token: only `msg` does. */
function active(answer: PushAnswer, monitor: string): Check {
  const check = 'monitor present and active';
  if (answer.kind === 'delivered') return { check, state: 'ok', found: `${monitor} took it` };
  if (answer.kind === 'failed') return { check, state: 'warn', found: 'not known: no answer came' };
  const { msg, status } = answer;
  if (msg === undefined) {
    return {
      check,
      state: 'warn',
      found: `not known: HTTP ${status} without a msg says nothing of the monitor or the token`,
    };
  }
  if (/not found|not active|paused/i.test(msg)) {
    return {
      check,
      state: 'fail',
      found: `${msg} Check that it exists, is not paused, and has this token`,
    };
  }
  return { check, state: 'warn', found: `not known: the monitor refused for another reason: ${msg}` };
}

function synced({ secret, why }: ClusterStatus): Check {
  const state = secret === 'synced' ? 'ok' : secret === 'unknown' ? 'warn' : 'fail';
  return {
    check: 'secret synced',
    state,
    found: secret === 'unknown' ? `not checked: ${why}` : `${secret}: ${why}`,
  };
}

function adviceOf(answer: PushAnswer): string | undefined {
  if (answer.kind !== 'failed' || !answer.reason.startsWith('bad address')) return undefined;
  return 'In a cluster a bad address is a fault of ndots: under the default of 5 the search domains are queried first, and may answer for names that they do not have. Set dnsConfig option ndots to 1.';
}

/** Only the running instance reaches the cluster. */
async function askCluster(command: CommandContext, namespace: string): Promise<ClusterStatus> {
  const { askIfRunning } = await import('../../core/host/operations/control-client.ts');
  try {
    const status = await askIfRunning<ClusterStatus>(
      command,
      CLUSTER_PATH,
      { namespace },
      'it has no push client',
    );
    return status ?? { secret: 'unknown', why: 'no instance runs here that can read the cluster' };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { secret: 'unknown', why: error.what };
  }
}

/** Settings of the two throwaway pods. */
interface PodSettings {
  readonly monitor: string;
  readonly namespace: string;
  /** Base of the monitor as the pods reach it. */
  readonly url: string;
  /** Image of the scheduled job, so that the pod sees what the job sees. */
  readonly jobImage: string;
  /** Image of another client that shows the body of every answer. */
  readonly captureImage: string;
}

/** The Secret that holds the push token in the cluster. */
const TOKEN_SECRET = { name: 'clickstack-watchdog', key: 'token' } as const;

/** What the job of `deploy/watchdog.cronjob.yaml` runs as. */
const RESTRICTED = {
  runAsNonRoot: true,
  runAsUser: 65_532,
  runAsGroup: 65_532,
  fsGroup: 65_532,
  seccompProfile: { type: 'RuntimeDefault' },
} as const;

/**
 * Two pods that push by hand: A is the job's image and client, B another client. Neither has a service account's token,
 * and the push token comes to them from its Secret alone. Their pushes say down, because up would hide an unhealthy stack.
 */
async function manifests({ monitor, namespace, url, jobImage, captureImage }: PodSettings): Promise<string> {
  const { stringify } = await import('yaml');
  const pod = (name: string, spec: object) =>
    stringify(
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: {
          restartPolicy: 'Never',
          activeDeadlineSeconds: 60,
          automountServiceAccountToken: false,
          dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
          ...spec,
        },
      },
      { lineWidth: 0 },
    );
  return [
    '# A, parity: the image and the client of the job; status line, headers and body.',
    pod('push-parity', parity(monitor, url, jobImage)),
    '---',
    '# B, body capture: a client that is not ours. `msg` in the body is the only place that says why.',
    pod('push-capture', capture(url, captureImage)),
    '# kubectl apply -f -, then kubectl logs of each, then kubectl delete pod push-parity push-capture',
  ].join('\n');
}

/** `holdfast push doctor` in the job's image, with its token mounted as the job has it. */
function parity(monitor: string, url: string, image: string): object {
  return {
    securityContext: RESTRICTED,
    containers: [
      {
        name: 'push',
        image,
        args: ['push', 'doctor', monitor, '--config', '/opt/holdfast/deploy/watchdog.config.ts'],
        env: [{ name: 'HOLDFAST_UPTIME_URL', value: url }],
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'token', mountPath: '/run/secrets/mounted', readOnly: true },
          { name: 'own', mountPath: '/run/secrets/holdfast' },
          { name: 'scratch', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      {
        name: 'token',
        secret: {
          secretName: TOKEN_SECRET.name,
          defaultMode: 0o440,
          items: [{ key: TOKEN_SECRET.key, path: 'push-token' }],
        },
      },
      { name: 'own', emptyDir: { medium: 'Memory' } },
      { name: 'scratch', emptyDir: {} },
    ],
  };
}

function capture(url: string, image: string): object {
  const address = `"${url.replace(/\/*$/, '')}/api/push/\${PUSH_TOKEN}?status=down&msg=push-capture&ping=0&probe=1"`;
  return {
    containers: [
      {
        name: 'push',
        image,
        command: ['/bin/sh', '-c'],
        args: [`exec curl -sS -i --max-time 20 ${address}`],
        env: [{ name: 'PUSH_TOKEN', valueFrom: { secretKeyRef: TOKEN_SECRET } }],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  };
}
