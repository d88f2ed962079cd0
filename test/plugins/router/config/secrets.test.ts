import { readFileSync } from 'node:fs';
import test from 'ava';
import { countSecrets } from '../../../../src/plugins/router/config/secrets.ts';

test('[R32] the secrets of the example config are counted and pointed at', (t) => {
  const file = new URL('../../../fixtures/network-config.json', import.meta.url);
  t.deepEqual(countSecrets(JSON.parse(readFileSync(file, 'utf8'))), {
    count: 7,
    paths: [
      '/interface/wlan/wlan0/wpaSupplicant/networks/0/psk',
      '/interface/wireguard/wg0/privateKey',
      '/interface/wireguard/wg0/peers/0/presharedKey',
      '/hostapd/wlan1/params/wpa_passphrase',
      '/apc/globalSysConfig/meshKey',
      '/apc/assets_template/ap_default/wifiNetworks/w-main/key',
      '/apc/assets_template/ap_default/wifiNetworks/w-guest/key',
    ],
  });
});

test('[R32] credentials of a dial-up link count, empty values do not', (t) => {
  const config = {
    interface: {
      pppoe: { 'ppp/0': { username: 'u', password: 'p', mtu: 1492 }, ppp1: { username: '', password: '' } },
    },
  };
  t.deepEqual(countSecrets(config).paths, [
    '/interface/pppoe/ppp~10/username',
    '/interface/pppoe/ppp~10/password',
  ]);
});

test('[R32] a config without secrets holds none, and anything may be asked', (t) => {
  for (const value of [
    {},
    { interface: { vlan: { a: { ipv4: '10.0.0.1/24' } } } },
    null,
    'text',
    [1],
    undefined,
  ]) {
    t.is(countSecrets(value).count, 0);
  }
});
