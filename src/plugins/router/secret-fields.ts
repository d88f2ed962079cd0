import type { SecretFields } from '../../core/host/logging/secret-fields.ts';

/**
 * What is secret in a network config beyond names such as `privateKey`. It is a separate file because every command
 * loads it before it shows a log, without loading the plugin.
 */
export const secretFields: SecretFields = {
  names: ['wepkey\\d?'],
  parts: ['wpasupplicant'],
  inside: {
    apc: /^key$/,
    wifinetworks: /^key$/,
    pppoe: /^(?:user|username|login)$/,
    hostapd: /pass|psk|wepkey|secret/,
    wpasupplicant: /^(?:identity|anonymousidentity|pin|password|privatekeypasswd)$/,
  },
  beside: { key: 'ssid' },
};
