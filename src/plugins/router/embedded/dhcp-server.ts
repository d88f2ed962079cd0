import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Bus } from '../../../bus/bus.ts';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { RouterError } from '../errors.ts';
import { commandOf, runTool } from '../host/tool.ts';
import { SupervisedChild } from './kernel/supervised-child.ts';

export interface DhcpServerOptions {
  /** The folder of generated files: it reads `dhcp/conf/*.conf` there, and keeps its leases in `dhcp/leases`. */
  readonly root: string;
  /** A namespace by its name; this process's own without one. */
  readonly namespace?: string | undefined;
  readonly clock: Clock;
  readonly bus: Pick<Bus, 'publish'>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

/** It says so once it serves. */
const STARTED = /\bstarted, version\b/;
/** Until it serves, in real time. */
const STARTS_WITHIN_MS = 5_000;
/** So often in a row it must end soon after its start until a person is told. */
const FAILURES_TO_TELL = 3;
/** It has recovered when it has served for this long. */
const RECOVERED_AFTER_MS = 30_000;

/**
 * The dnsmasq that serves DHCP and sends router advertisements as the generated files say (R23). It answers no DNS queries.
 * One that ends by itself is started again with a growing delay.
 */
export class DhcpServer {
  readonly #options: DhcpServerOptions;
  readonly #child: SupervisedChild;
  readonly #pidFile: string;
  #waiting: { readonly resolve: () => void; readonly reject: (reason: string) => void } | undefined;
  #isServing = false;
  #isTold = false;
  #cancelRecovered: (() => void) | undefined;

  constructor(options: DhcpServerOptions) {
    const { namespace, clock, logger, bus } = options;
    this.#options = options;
    this.#pidFile = join(options.root, 'dhcp', 'dnsmasq.pid');
    const [program, ...args] = commandOf({ program: 'dnsmasq', args: this.#args(), namespace });
    this.#child = new SupervisedChild({
      program,
      args,
      clock,
      onLine: (line) => {
        if (STARTED.test(line)) this.#serves();
      },
      onEnd: (reason, failures) => {
        this.#isServing = false;
        this.#cancelRecovered?.();
        this.#waiting?.reject(reason);
        logger.warn({ reason, failures }, 'router.dhcp_ended');
        if (failures < FAILURES_TO_TELL || this.#isTold) return;
        this.#isTold = true;
        bus.publish(alertRaised, down('firing', reason));
      },
    });
  }

  /** Starts it; it need not serve yet when this resolves. One that a killed router left behind is ended before. */
  async start(): Promise<void> {
    await mkdir(join(this.#options.root, 'dhcp', 'conf'), { recursive: true, mode: 0o755 });
    await this.#endLeftBehind();
    this.#child.start();
  }

  /**
   * Starts it anew, so that it reads its files. Files that it could not read leave the running one in place.
   *
   * @throws HF_ROUTER_TOOL it refuses the files, or does not serve within 5 s
   */
  async restart(): Promise<void> {
    const { namespace } = this.#options;
    await runTool({ program: 'dnsmasq', args: ['--test', ...this.#args()], namespace });
    await this.#child.stop();
    this.#isServing = false;
    const serves = new Promise<void>((resolve, reject) => {
      this.#waiting = {
        resolve,
        reject: (reason) => reject(new RouterError('HF_ROUTER_TOOL', { program: 'dnsmasq', reason })),
      };
    });
    const late = setTimeout(() => this.#waiting?.reject('it did not start within 5 s'), STARTS_WITHIN_MS);
    try {
      await this.start();
      await serves;
    } finally {
      clearTimeout(late);
      this.#waiting = undefined;
    }
  }

  async stop(): Promise<void> {
    this.#cancelRecovered?.();
    await this.#child.stop();
  }

  /** For health pages. */
  report(): JsonObject {
    const { running, ...facts } = this.#child.report();
    if (running === true && this.#isServing) return { serving: true, ...facts };
    const reason = `no DHCP and no advertisements: dnsmasq does not serve (${String(facts.reason ?? 'it starts')})`;
    return { ok: false, serving: false, reason };
  }

  #args(): string[] {
    const { root } = this.#options;
    return [
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      `--conf-dir=${join(root, 'dhcp', 'conf')},*.conf`,
      '--port=0',
      '--log-facility=-',
      `--dhcp-leasefile=${join(root, 'dhcp', 'leases')}`,
      `--pid-file=${this.#pidFile}`,
    ];
  }

  #serves(): void {
    const { clock, bus, logger } = this.#options;
    this.#isServing = true;
    logger.info({ pid: this.#child.pid }, 'router.dhcp_serves');
    this.#waiting?.resolve();
    this.#cancelRecovered = clock.after(RECOVERED_AFTER_MS, () => {
      if (this.#isTold) bus.publish(alertRaised, down('resolved', ''));
      this.#isTold = false;
    });
  }

  async #endLeftBehind(): Promise<void> {
    const pid = Number(await readFile(this.#pidFile, 'utf8').catch(() => ''));
    if (!Number.isInteger(pid) || pid <= 1 || !(await this.#isOurs(pid))) return;
    process.kill(pid, 'SIGTERM');
    const deadline = performance.now() + STARTS_WITHIN_MS;
    while ((await this.#isOurs(pid)) && performance.now() < deadline) await sleep(20);
    this.#options.logger.warn({ pid }, 'router.dhcp_left_behind');
  }

  /** Whether a process is a dnsmasq of this folder; the pid may long be that of something else. */
  async #isOurs(pid: number): Promise<boolean> {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return command.split('\0').includes(`--pid-file=${this.#pidFile}`);
  }
}

function down(state: 'firing' | 'resolved', reason: string) {
  return {
    name: 'router.dhcp_down',
    severity: 'critical' as const,
    text: 'The DHCP service ends soon after each start, so clients get no lease and no advertisement. It is started again and again; read why in the log.',
    labels: { state, ...(reason !== '' && { reason }) },
  };
}
