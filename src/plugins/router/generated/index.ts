/**
 * The files of the DHCP, DHCPv6-client and DNS daemons: computed from the config alone (`generate.ts`), written whole or not
 * at all (`folder.ts`), and the service that reads them, restarted once a burst (`dhcp-service.ts`). Outputs only:
 * nothing reads the config back from here. Imports the config's shape and the reapply plan; the box and the kernel's
 * lines import it.
 */
export { dhcpRewritten, registerDhcpService } from './dhcp-service.ts';
export { GeneratedFolder } from './folder.ts';
export { advertisingLegs, generateFiles, legsOfFiles, rewrittenLegs } from './generate.ts';
export { isConfigurable, isDeviceName } from './names.ts';
