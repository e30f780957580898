import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { describeNetworksOnAHub } from '../support/hubs/network-suite.ts';
import { notRunHere } from '../support/not-run-here.ts';
import { realHubServer } from '../support/hubs/real-hub-server.ts';

/** Pools and external IPs as objects of a real kube-apiserver. */
const binary = kubeBinary((line) => console.log(`  ${line}`));

if ('missing' in binary) {
  describe('external IPs on a real kube-apiserver', () => {
    it('run', function () {
      notRunHere(this, 'kube-apiserver', binary.missing);
    });
  });
} else describeNetworksOnAHub('a real kube-apiserver', () => realHubServer(binary.path));
