import { killSuite } from '../../support/e2e-kill-suite.ts';

killSuite('sqlite');
