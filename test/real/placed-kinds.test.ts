import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { describePlacedKinds } from '../support/hubs/placed-suite.ts';
import { realHubServer } from '../support/hubs/real-hub-server.ts';
import { notRunHere } from '../support/not-run-here.ts';

/** Every kind that is placed on hubs, as objects of a real kube-apiserver. */
const binary = kubeBinary((line) => console.log(`  ${line}`));

if ('missing' in binary) {
  describe('objects of every kind on a real kube-apiserver', () => {
    it('run', function () {
      notRunHere(this, 'kube-apiserver', binary.missing);
    });
  });
} else describePlacedKinds('a real kube-apiserver', () => realHubServer(binary.path));
