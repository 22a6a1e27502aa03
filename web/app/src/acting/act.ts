// SPDX-License-Identifier: Apache-2.0
import { post } from "../api";
import type {
  AdjustSweepRequest,
  AnnotateSweepRequest,
  CancelTrialRequest,
  CreateTokenRequest,
  DrainWorkerRequest,
  ExtendSweepRequest,
  ExtendSweepResponse,
  ListAuditRequest,
  ListAuditResponse,
  ListTokensRequest,
  ListTokensResponse,
  ListWorkersResponse,
  PauseSweepRequest,
  PlanRequest,
  RenameSweepRequest,
  ResumeSweepRequest,
  RetrySweepRequest,
  RetrySweepResponse,
  RevokeTokenRequest,
  SubmitRequest,
  SubmitResponse,
  SweepPlan,
  SweepRequest,
  SweepSummary,
  TokenInfo,
  ValidateRequest,
  ValidateResponse,
} from "../generated/ablate";

/** The methods that pages call, each with its request and its answer. */
interface Methods {
  Validate: [ValidateRequest, ValidateResponse];
  Plan: [PlanRequest, SweepPlan];
  Submit: [SubmitRequest, SubmitResponse];
  ExtendSweep: [ExtendSweepRequest, ExtendSweepResponse];
  CancelSweep: [SweepRequest, SweepSummary];
  CancelTrial: [CancelTrialRequest, SweepSummary];
  PauseSweep: [PauseSweepRequest, SweepSummary];
  ResumeSweep: [ResumeSweepRequest, SweepSummary];
  AdjustSweep: [AdjustSweepRequest, SweepSummary];
  RetrySweep: [RetrySweepRequest, RetrySweepResponse];
  RenameSweep: [RenameSweepRequest, SweepSummary];
  AnnotateSweep: [AnnotateSweepRequest, SweepSummary];
  DrainWorker: [DrainWorkerRequest, ListWorkersResponse];
  ListTokens: [ListTokensRequest, ListTokensResponse];
  CreateToken: [CreateTokenRequest, TokenInfo];
  RevokeToken: [RevokeTokenRequest, TokenInfo];
  ListAudit: [ListAuditRequest, ListAuditResponse];
}
export type Method = keyof Methods;

/** Fields that are left out are zero. */
type Asked<T> = { [K in keyof T]?: T[K] extends object ? Asked<T[K]> : T[K] };
export type Request<M extends Method> = Asked<Methods[M][0]>;
export type Answer<M extends Method> = Methods[M][1];

/** Calls a method, and returns its answer. Throws ApiError. */
export function act<M extends Method>(
  method: M,
  request: Request<M>,
  signal?: AbortSignal,
): Promise<Answer<M>> {
  return post<Answer<M>>(`/actions/${method}`, request, signal);
}
