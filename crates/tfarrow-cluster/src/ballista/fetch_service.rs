//! The service from which executors and clients fetch rows.

use std::sync::Arc;

use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, PollInfo,
    SchemaResult, Ticket,
    flight_service_server::{FlightService, FlightServiceServer},
};
use async_trait::async_trait;
use ballista_core::{
    serde::{decode_protobuf, scheduler::Action as BallistaAction},
    utils::create_grpc_server,
};
use ballista_executor::{ArrowFlightServerProvider, flight_service::BallistaFlightService};
use tonic::{Request, Response, Status, Streaming};

use crate::ballista::{MOST_MESSAGE_BYTES, job_folder::is_job_id, tls::Tls};

/// The provider of the service for a process of Ballista.
pub(crate) fn fetch_service(tls: Option<Tls>) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |work_dir, address, mut shutdown, config| {
        let service = FlightServiceServer::new(FetchService {
            inner: BallistaFlightService::new(work_dir),
        })
        .max_decoding_message_size(MOST_MESSAGE_BYTES)
        .max_encoding_message_size(MOST_MESSAGE_BYTES);
        let server = create_grpc_server(&config);
        let server = match &tls {
            Some(tls) => server.tls_config(tls.server()),
            None => Ok(server),
        };
        tokio::spawn(async move {
            let served = server?
                .add_service(service)
                .serve_with_shutdown(address, shutdown.recv());
            Ok(served.await?)
        })
    })
}

/// The service of Ballista for requests whose job is the name of a folder. Ballista joins the job
/// to the path of the work folder without a check, so that a request could name a file outside of
/// it.
struct FetchService {
    inner: BallistaFlightService,
}

/// Checks the job of a request for rows.
fn check_job(request: &[u8]) -> Result<(), Status> {
    let action =
        decode_protobuf(request).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let BallistaAction::FetchPartition { job_id, .. } = &action;
    if is_job_id(job_id) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{:?} is not the identifier of a job",
        job_id.as_str()
    )))
}

#[async_trait]
impl FlightService for FetchService {
    type DoActionStream = <BallistaFlightService as FlightService>::DoActionStream;
    type DoExchangeStream = <BallistaFlightService as FlightService>::DoExchangeStream;
    type DoGetStream = <BallistaFlightService as FlightService>::DoGetStream;
    type DoPutStream = <BallistaFlightService as FlightService>::DoPutStream;
    type HandshakeStream = <BallistaFlightService as FlightService>::HandshakeStream;
    type ListActionsStream = <BallistaFlightService as FlightService>::ListActionsStream;
    type ListFlightsStream = <BallistaFlightService as FlightService>::ListFlightsStream;

    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        check_job(&request.get_ref().ticket)?;
        self.inner.do_get(request).await
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        check_job(&request.get_ref().body)?;
        self.inner.do_action(request).await
    }

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.inner.handshake(request).await
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.inner.list_flights(request).await
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.inner.get_flight_info(request).await
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        self.inner.poll_flight_info(request).await
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        self.inner.get_schema(request).await
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.inner.do_put(request).await
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.inner.do_exchange(request).await
    }

    async fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        self.inner.list_actions(request).await
    }
}
