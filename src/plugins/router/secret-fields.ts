import type { SecretFields } from '../../core/host/logging/secret-fields.ts';

/**
 * What is secret in a network config beyond names such as `privateKey`. It is a separate file because every command
 * loads it before it shows a log, without loading the plugin.
 */
/** A network config as a whole, wherever a command reads one. */
export const NETWORK_CONFIG = 'networkconfig';

export const secretFields: SecretFields = {
  names: ['wepkey\\d?'],
  parts: ['wpasupplicant'],
  inside: {
    [NETWORK_CONFIG]: /^keys$/,
    apc: /^keys?$/,
    wifinetworks: /^keys?$/,
    pppoe: /^(?:user|username|login|keys)$/,
    hostapd: /pass|psk|wepkey|secret|^keys$/,
    wpasupplicant: /^(?:identity|anonymousidentity|pin|password|privatekeypasswd|keys)$/,
  },
  beside: { key: 'ssid' },
};
