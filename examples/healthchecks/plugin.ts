/**
 * Replaces the uptime monitor: beats of the watchdog and the reconciler go to a service that takes a ping at a secret URL,
 * e.g. Healthchecks. Whoever sends beats knows only the token `uptime.monitor`, which this plugin provides in place of
 * `uptime()`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  definePlugin,
  type Heartbeat,
  type PushAnswer,
  type PushEvent,
  type UptimeMonitor,
  UptimeMonitorToken,
} from 'holdfast';
import { z } from 'zod';

const LONGEST_WAIT_MS = 10_000;
const LONGEST_ANSWER = 1_024;

/** @example healthchecks({ folder: '/etc/holdfast/pings' }) */
export const healthchecks = definePlugin({
  name: 'healthchecks',
  options: z.strictObject({
    /** Base of the service; what follows is secret, and stands in a file. */
    url: z.url({ protocol: /^https?$/ }).default('https://hc-ping.com'),
    /** Folder with one file (mode 0600) a monitor, which holds the last part of its URL. */
    folder: z.string().min(1),
  }),
  provides: [UptimeMonitorToken],
  register(context, { url, folder }) {
    context.provide(UptimeMonitorToken, ({ clock }) => new Healthchecks(url, folder, () => clock.now()));
  },
});

class Healthchecks implements UptimeMonitor {
  readonly place: string;
  readonly #folder: string;
  readonly #now: () => number;

  constructor(url: string, folder: string, now: () => number) {
    this.place = url.replace(/\/$/, '');
    this.#folder = folder;
    this.#now = now;
  }

  async push(monitor: string, { status, msg }: Heartbeat, signal?: AbortSignal): Promise<PushAnswer> {
    const key = (await readFile(join(this.#folder, monitor), 'utf8')).trim();
    const late = AbortSignal.timeout(LONGEST_WAIT_MS);
    try {
      const answer = await fetch(`${this.place}/${key}${status === 'up' ? '' : '/fail'}`, {
        method: 'POST',
        body: msg,
        redirect: 'error',
        signal: signal ? AbortSignal.any([signal, late]) : late,
      });
      const body = (await answer.text()).slice(0, LONGEST_ANSWER).replaceAll(key, '***');
      if (answer.ok) return { kind: 'delivered', status: answer.status, body };
      return { kind: 'refused', status: answer.status, body, exitStatus: 8 };
    } catch (error) {
      const { name } = error as Error;
      // Not the error's own message, which may name the URL.
      return {
        kind: 'failed',
        reason: name === 'TimeoutError' ? 'no answer in time' : 'no connection',
        exitStatus: 4,
      };
    }
  }

  async pushEvent(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushEvent> {
    const at = this.#now();
    const answer = await this.push(monitor, beat, signal).catch(() => undefined);
    switch (answer?.kind) {
      case 'delivered':
        return { type: 'PUSHED', at, status: answer.status };
      case 'refused':
        return { type: 'PUSH_REFUSED', at, status: answer.status, body: answer.body, exitStatus: 8 };
      case 'failed':
        return { type: 'PUSH_FAILED', at, reason: answer.reason, exitStatus: answer.exitStatus };
      case undefined:
        return { type: 'PUSH_FAILED', at, reason: 'its key cannot be read', exitStatus: 3 };
    }
  }
}
