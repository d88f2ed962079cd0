/**
 * `holdfast router simulate` (R39): a prefix change, a WAN down or up, a change of the access points, set off over the control
 * socket and carried out by the actors `router.wan` and `router.apc` as if the world had done it. Refused where the
 * kernel is the machine's own.
 */
export { registerSimulateCommand } from './command.ts';
export { registerSimulations } from './control.ts';
export { knownWans, registerWans } from './wan.ts';
