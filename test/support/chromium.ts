import { type Browser, chromium } from 'playwright-core';
import type { Scope } from './scope.ts';

/** Debian's Chromium, which `npm test` installs. */
const PROGRAM = '/usr/bin/chromium';

/** Without these it asks the internet for updates and for what its components are; the sandbox does not run as root. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A browser of the test's own, without a window. @param args more of its switches */
export async function startChromium(t: Scope, args: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({
    ...{ executablePath: PROGRAM, args: [...QUIET, ...args], timeout: 120_000 },
  });
  t.teardown(() => browser.close());
  return browser;
}
