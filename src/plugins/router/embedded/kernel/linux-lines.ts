import ipaddr from 'ipaddr.js';
import { isConfigurable } from '../../config/validate.ts';
import { KernelRefusal, type KernelStep } from './driver.ts';
import { type LinuxRoute, OWN_PROTOCOL } from './linux-snapshot.ts';

// Lines for `ip -batch`. Every value from a config or the kernel is checked before it becomes part of a line.

/** @throws KernelRefusal a value of the step may not be passed to `ip` */
export function checkStep(step: KernelStep): void {
  nameWord(step.intf);
  switch (step.step) {
    case 'setLink':
      step.lower.forEach(nameWord);
      if (step.vid !== undefined && !(Number.isInteger(step.vid) && step.vid > 0 && step.vid < 4095))
        throw new KernelRefusal(`Invalid vid for ${step.intf}`);
      break;
    case 'applyIpv4Settings':
      for (const address of step.addresses) cidrWord(address, 4, step.intf);
      break;
    case 'applyIpv6Settings':
      for (const address of step.addresses) cidrWord(address, 6, step.intf);
      if (step.delegated !== undefined) cidrWord(step.delegated, 6, step.intf);
      break;
    case 'changeRoutingTables':
      if (step.gateway !== undefined) addressWord(step.gateway, 4, step.intf);
      if (step.gateway6 !== undefined) addressWord(step.gateway6, 6, step.intf);
      break;
    case 'removeLink':
    case 'flushIP':
      break;
  }
}

/** @returns the name @throws KernelRefusal */
export function nameWord(name: string): string {
  if (!isConfigurable(name)) throw new KernelRefusal(`"${shown(name)}" is no device to configure`);
  return name;
}

export function cidrWord(text: string, family: 4 | 6, intf: string): string {
  const [address = '', bits = '', ...rest] = text.split('/');
  const fits = /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
  if (rest.length > 0 || !fits) throw new KernelRefusal(`Invalid ipv${family} address for ${intf}`);
  return `${addressWord(address, family, intf)}/${bits}`;
}

function addressWord(text: string, family: 4 | 6, intf: string): string {
  const valid = family === 4 ? ipaddr.IPv4.isValidFourPartDecimal(text) : ipaddr.IPv6.isValid(text);
  if (!valid || !/^[0-9a-fA-F:.]+$/.test(text))
    throw new KernelRefusal(`Invalid ipv${family} address for ${intf}`);
  return text;
}

/** A default route of our own. */
export function defaultRouteLine(intf: string, gateway: string, family: 4 | 6): string {
  return `route replace ${anywhere(family)} via ${gateway} dev ${intf} proto ${OWN_PROTOCOL}`;
}

/** Puts back, or takes away, a route that the kernel had. @returns undefined for a route that no line can express */
export function routeLine(verb: 'replace' | 'del', route: LinuxRoute): string | undefined {
  const { family, destination, gateway, devices, protocol, metric, source, table, scope } = route;
  const [intf, ...others] = devices;
  if (intf === undefined || others.length > 0) return undefined;
  const words = [
    ['', destination === 'default' ? anywhere(family) : destination],
    ['via ', gateway],
    ['dev ', intf],
    ['proto ', protocol],
    ['metric ', metric === undefined ? undefined : String(metric)],
    ['src ', source],
    ['table ', table],
    // IPv6 routes have none; `ip` would apply the word to both families.
    ['scope ', family === 4 ? scope : undefined],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined);
  if (!words.every(([, word]) => /^[\w.:/-]+$/.test(word))) return undefined;
  return `route ${verb} ${words.map(([before, word]) => before + word).join(' ')}`;
}

function anywhere(family: 4 | 6): string {
  return family === 4 ? '0.0.0.0/0' : '::/0';
}

function shown(name: string): string {
  return name.replace(/[^\w.-]/g, '?').slice(0, 20);
}
