import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { BoxParts } from './box.ts';
import type { EmbeddedRouter } from './embedded-router.ts';
import { dhcpRewritten, registerDhcpService } from './generated/dhcp-service.ts';
import { GeneratedFolder } from './generated/folder.ts';
import { registerAddressSets, tellAddresses } from './kernel/address-sets.ts';
import { LinuxKernel } from './kernel/linux.ts';
import { MemoryKernel } from './kernel/memory.ts';
import type { RouterParts } from './routes/http.ts';
import { registerSimulateCommand } from './simulate/command.ts';
import { registerSimulations } from './simulate/control.ts';
import { knownWans, registerWans } from './simulate/wan.ts';
import { CONFIG_TYPE } from './topics.ts';

/** Options of the router plugin that are about the box under the config. */
export const kernelOptions = {
  /**
   * `memory`: a model of a kernel, which touches nothing. `linux`: the network of this machine, through iproute2; needs
   * the rights to change it.
   */
  kernel: z.enum(['memory', 'linux']).default('memory'),
  /** A network namespace (`ip netns`) that `linux` works in instead of this process's own. */
  namespace: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/)
    .optional(),
  /** Where the files of the DHCP and DNS daemons go; a relative path is one of the data folder. */
  generatedDir: z.string().min(1).default('router'),
  /** From the last rewrite of a DHCP file to the restart of the service. */
  dhcpRestartMs: z.int().min(10).default(22_000),
  /** From a change of addresses until the packet filter's sets follow. */
  addressSetsMs: z.int().min(10).max(60_000).default(45_000),
};

type Settings = z.output<z.ZodObject<typeof kernelOptions>> & { readonly replyTimeoutMs: number };

export function boxParts({ kernel, namespace, generatedDir }: Settings, dataDir: string): Required<BoxParts> {
  const root = isAbsolute(generatedDir) ? generatedDir : join(dataDir, generatedDir);
  return {
    kernel: kernel === 'linux' ? new LinuxKernel({ namespace }) : new MemoryKernel(),
    files: new GeneratedFolder(root),
  };
}

/** Registers what follows from the box: DHCP service, address sets, WANs, and their simulation. */
export function registerBox(context: PluginContext, parts: () => RouterParts, settings: Settings): void {
  const { kernel, namespace, dhcpRestartMs, addressSetsMs, replyTimeoutMs } = settings;
  registerDhcpService(context, parts, dhcpRestartMs);
  registerAddressSets(context, addressSetsMs);
  registerWans(context, parts);
  registerSimulations(context, parts, {
    isReal: kernel === 'linux' && namespace === undefined,
    replyTimeoutMs,
  });
  registerSimulateCommand(context);
}

/** Brings the box to the persisted config, and tells those who follow it what a kill left undone. */
export async function setUpBox(
  router: EmbeddedRouter,
  services: Services,
  signal: AbortSignal,
): Promise<void> {
  const legs = await router.setUp(signal, knownWans(services));
  // At the very first start everything is written, and the service has not run with anything else.
  if (legs.length > 0 && services.actors.list(CONFIG_TYPE).length > 0) {
    services.bus.publish(dhcpRewritten, { legs });
  }
  await tellAddresses(router, services);
}
