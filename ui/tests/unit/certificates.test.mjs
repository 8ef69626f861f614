// Certificates: paths of theirs.
import test from 'node:test';
import assert from 'node:assert/strict';
import { isAll, isCertificates } from '../../src/lib/certificates.ts';

const AT = '/configuration/certificates';

test('only its own paths are its', () => {
  assert.ok(isAll(AT) && isAll(`${AT}/`) && isCertificates(AT) && isCertificates(`${AT}/x`));
  assert.ok(!isCertificates('/configuration/certificates2') && !isAll(`${AT}/x`));
});
