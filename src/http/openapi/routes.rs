//! The one table of routes: it builds the router and the document alike, so that neither can have a route the other lacks.

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;

use super::Context;
use super::operation::Operation;
use crate::http::reply::Node;

/// A table of routes: `method "path" => room::handler;`. What describes a call is the function of the same name in the same
/// room of `about`, so that a route cannot be added without its description.
macro_rules! routes {
    ($frame:expr; $($method:ident $path:literal => $room:ident::$handler:ident;)+) => {
        $crate::http::openapi::routes::Routes::framed($frame)$(.add(
            stringify!($method),
            $path,
            axum::routing::$method($room::$handler),
            $crate::http::openapi::about::$room::$handler,
        ))+
    };
}
pub(in crate::http) use routes;

/// How answers and refusals are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// In Envelopes of the protocol's media type.
    Envelope,
    /// In plain JSON.
    Plain,
}

/// What describes a call, for a node's own configuration.
pub type Describe = fn(&Context<'_>) -> Operation;

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    /// `get`, `post`, `put` or `delete`.
    pub method: &'static str,
    /// As the router spells it, which is as the document does.
    pub path: &'static str,
    /// How it is answered.
    pub frame: Frame,
    /// What it is.
    pub describe: Describe,
}

/// Routes of one framing.
pub struct Routes {
    frame: Frame,
    router: Router<Node>,
    listed: Vec<Listed>,
}

impl Routes {
    /// None yet.
    pub fn framed(frame: Frame) -> Self {
        Self {
            frame,
            router: Router::new(),
            listed: Vec::new(),
        }
    }

    /// Adds a call, and what describes it.
    pub fn add(
        mut self,
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Node>,
        describe: Describe,
    ) -> Self {
        self.listed.push(Listed {
            method,
            path,
            frame: self.frame,
            describe,
        });
        Self {
            router: self.router.route(path, handler),
            ..self
        }
    }

    /// The router, and `table` with these calls added.
    pub fn list(self, table: &mut Vec<Listed>) -> Router<Node> {
        table.extend(self.listed);
        self.router
    }
}

impl Listed {
    /// Whether the call only looks.
    pub fn only_looks(&self) -> bool {
        self.method.eq_ignore_ascii_case(Method::GET.as_str())
    }
}
