// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { act, type Answer, type Method, type Request } from "../../acting/act";
import { asApiError } from "../../api";
import type { Resource } from "../../resource";

/**
 * What a method that changes nothing answers: asked for when the page opens, when the request changes, and when `times` does. No event
 * tells of tokens and the audit. While a new answer is on its way, the old one stays.
 */
export function useAsked<M extends Method>(
  method: M,
  request: Request<M>,
  times: number,
): Resource<Answer<M>> {
  const [resource, setResource] = useState<Resource<Answer<M>>>({});
  useEffect(() => {
    const abort = new AbortController();
    act(method, request, abort.signal).then(
      (data) => !abort.signal.aborted && setResource({ data }),
      (error) => !abort.signal.aborted && setResource((old) => ({ ...old, error: asApiError(error) })),
    );
    return () => abort.abort();
  }, [method, JSON.stringify(request), times]);
  return resource;
}
