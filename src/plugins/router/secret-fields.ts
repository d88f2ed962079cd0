import type { SecretFields } from '../../core/host/logging/secret-fields.ts';

/**
 * What is secret in a network config beyond names such as `privateKey`. It is a separate file because every command
 * loads it before it shows a log, without loading the plugin.
 */

/** A network config as a whole, wherever a command reads one. */
export const NETWORK_CONFIG = 'networkconfig';

/** What a name begins with that is written as one word with `pass` or `key`. */
const OWNERS = 'user|admin|root|login|auth|ppp|pppoe|pptp|l2tp|wifi|wlan|wpa|eap|smtp|mail|ftp|vpn|proxy';
const KEYS =
  'priv(?:ate)?|wpa_?\\d?|wep|wifi|wlan|wireless|radius|ike|ipsec|vpn|tunnel|enc(?:rypt(?:ion)?)?|cipher|crypto|' +
  'auth(?:entication)?|hmac|sae|signing|session|snmp|ppp|tls|ssl';

/** Last words of names that hold a secret also in parts of a config that no schema knows. */
const SECRET = [
  `(?:(?:${OWNERS})_?)?pass(?:_?(?:word|wd|phrase|code))?`,
  'pwd?',
  'psk',
  'pre_?shared(?:_?(?:key|secret))?',
  'secret',
  'token',
  'cred(?:ential)?',
  't?otp',
  '(?:wps|sim|admin|unlock)_?pin',
  '[pg][mt]k',
  `(?:${KEYS})_?key`,
  'key_?material',
  '(?:snmp|ro|rw|read|write|trap)_?(?:only_?)?community',
].join('|');
/** Words behind them that only say in which form it stands there. */
const FORM = '\\d+|hex|text|ascii|value|hash|plain|plaintext|encrypted|enc|b64|base64|data|old|new|current';
const UNKNOWN_PARTS = new RegExp(`^keys$|(?:^|_)(?:${SECRET})s?\\d*(?:_(?:${FORM}))*$`);

const keys = /^keys?$/;

export const secretFields: SecretFields = {
  names: ['wepkey\\d?'],
  parts: ['wpasupplicant'],
  inside: {
    [NETWORK_CONFIG]: UNKNOWN_PARTS,
    apc: keys,
    wifinetworks: keys,
    wifi: keys,
    wpa: keys,
    radius: keys,
    radiusserver: keys,
    radiusservers: keys,
    ipsec: keys,
    openvpn: keys,
    ppp: keys,
    pptp: keys,
    l2tp: keys,
    snmp: /communit(?:y|ies)$|^keys?$/,
    snmpd: /communit(?:y|ies)$|^keys?$/,
    pppoe: /^(?:user|username|login|keys)$/,
    hostapd: /pass|psk|wepkey|secret|^keys$/,
    wpasupplicant: /^(?:identity|anonymousidentity|pin|password|privatekeypasswd|keys)$/,
  },
  beside: { key: 'ssid' },
};
