//! Parsing of SQL text into statements, one at a time, with checks before planning.
//!
//! ```text
//! text ─▶ tokens ─▶ statement ─▶ NestingDepth ─▶ RelationCount ─▶ Dialect ─▶ ClauseChecker ─▶ HomeDir ─▶ DataFusion's planner
//! ```

pub(crate) mod clauses;
mod dialect;
pub(crate) mod headings;
pub(crate) mod home_dir;
mod lateral_keyword;
mod nesting_depth;
mod relations;
pub(crate) mod summarize;
mod visit;

use std::vec;

use datafusion::{
    common::plan_err,
    error::Result,
    prelude::SessionContext,
    sql::{
        parser::{CopyToSource, DFParserBuilder, Statement},
        sqlparser::{
            dialect::GenericDialect,
            keywords::Keyword,
            parser::{Parser, ParserError},
            tokenizer::{Token, TokenWithSpan, Tokenizer},
        },
    },
};
use tfarrow_datafusion::internals::HomeDir;

use crate::statements::{
    clauses::{ClauseChecker, check_copy, check_external_table},
    dialect::Dialect,
    home_dir::{HomeDirVisitor, expand_relation},
    lateral_keyword::LateralKeyword,
    nesting_depth::NestingDepth,
    relations::RelationCount,
    visit::visit,
};

/// Maximum number of EXPLAIN keywords in one statement. DataFusion executes one, and parses them
/// recursively.
const MAX_EXPLAINS: usize = 50;
/// Bytes of stack per token of a statement; a token adds at most one level to the syntax tree.
const STACK_PER_TOKEN: usize = 1 << 10;
/// Bytes of stack that each statement needs, independent of its length.
const STACK: usize = 1 << 20;

/// Limits on SQL text, which are checked before planning. Beyond them, planning could exhaust
/// memory, stack or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// `query_bytes`: bytes of a text of one or more statements. 524,288 by default.
    pub bytes: usize,
    /// `query_tokens`: tokens of one statement, without white space and comments. 100,000 by
    /// default.
    pub tokens: usize,
    /// `query_depth`: nesting levels of one statement. Nested expressions and queries, operators of
    /// a chain, set operations, joins and common table expressions each add a level. 1,000 by
    /// default.
    pub depth: usize,
    /// `query_relations`: tables and common table expressions of one statement, each as often as it
    /// is planned. 10,000 by default.
    pub relations: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            bytes: 512 << 10,
            tokens: 100_000,
            depth: 1_000,
            relations: 10_000,
        }
    }
}

/// Parses the statements of `text`, in order, for the session `context` to plan.
///
/// A clause that DataFusion would parse and ignore is an error, as is a statement that exceeds a
/// limit. A leading `~/` in names of files is expanded.
///
/// ```
/// use tfarrow_sql::{QueryLimits, SessionOptions, plan_statement, session_context, statements};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = session_context(SessionOptions::default())?;
/// for statement in statements("SELECT 1; SELECT 2", &context, QueryLimits::default())? {
///     let plan = plan_statement(statement?, &context.state()).await?;
///     context.execute_logical_plan(plan).await?.show().await?;
/// }
/// let sampled = statements("SELECT * FROM t TABLESAMPLE (10)", &context, QueryLimits::default())?.next();
/// assert!(sampled.is_some_and(|statement| statement.is_err()));
/// # Ok(()) }
/// ```
///
/// # Errors
/// The text is longer than `limits.bytes`, contains an unknown character, or has an unterminated
/// quote. Other errors are items of the iterator.
pub fn statements(text: &str, context: &SessionContext, limits: QueryLimits) -> Result<Statements> {
    if text.len() > limits.bytes {
        return plan_err!(
            "the text has more than query_bytes={} bytes; split it, or read its values from a file",
            limits.bytes
        );
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize_with_location()
        .map_err(ParserError::from)?;
    Ok(Statements {
        tokens: tokens.into_iter(),
        context: context.clone(),
        limits,
    })
}

/// Iterator over the statements of a text; see [`statements`]. It continues after a statement with
/// an error.
pub struct Statements {
    tokens: vec::IntoIter<TokenWithSpan>,
    context: SessionContext,
    limits: QueryLimits,
}

impl std::fmt::Debug for Statements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statements")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Iterator for Statements {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.tokens.as_slice().is_empty() {
            let tokens: Vec<_> = self
                .tokens
                .by_ref()
                .take_while(|token| token.token != Token::SemiColon)
                .collect();
            if tokens.iter().any(is_significant) {
                return summarize::expand(tokens)
                    .and_then(|tokens| self.statement(tokens))
                    .transpose();
            }
        }
        None
    }
}

/// Returns whether a token is neither white space nor a comment.
fn is_significant(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

impl Statements {
    fn statement(&self, tokens: Vec<TokenWithSpan>) -> Result<Option<Statement>> {
        let count = tokens.iter().filter(|token| is_significant(token)).count();
        if count > self.limits.tokens {
            return plan_err!(
                "a statement has {count} tokens, more than query_tokens={}; split it, or read its values from a file",
                self.limits.tokens
            );
        }
        let mut explains = 0;
        for token in &tokens {
            if let Token::Word(word) = &token.token
                && word.keyword == Keyword::EXPLAIN
            {
                explains += 1;
            }
        }
        if explains > MAX_EXPLAINS {
            return plan_err!("EXPLAIN of EXPLAIN is not supported; write EXPLAIN once");
        }
        // The depth is only known after parsing, and parsing and dropping a deep tree need stack in
        // proportion to it.
        let stack = STACK + count * STACK_PER_TOKEN;
        stacker::maybe_grow(stack, stack, || {
            let Some(mut statement) = DFParserBuilder::new(tokens)
                .build()?
                .parse_statements()?
                .pop_front()
            else {
                return Ok(None);
            };
            self.check_depth(&mut statement)?;
            visit(
                &mut statement,
                &mut RelationCount::new(self.limits.relations),
            )?;
            visit(&mut statement, &mut Dialect)?;
            self.check_clauses(&mut statement)?;
            expand_home(&mut statement)?;
            unquote_partitions(&mut statement);
            visit(&mut statement, &mut LateralKeyword)?;
            Ok(Some(statement))
        })
    }

    fn check_depth(&self, statement: &mut Statement) -> Result<()> {
        let mut depth = NestingDepth::default();
        visit(statement, &mut depth)?;
        if depth.deepest() > self.limits.depth {
            return plan_err!(
                "a statement nests {} levels deep, more than query_depth={}; split it, or write IN (..) or VALUES for a \
                 long chain of OR, UNION or CASE",
                depth.deepest(),
                self.limits.depth
            );
        }
        Ok(())
    }

    fn check_clauses(&self, statement: &mut Statement) -> Result<()> {
        let state = self.context.state();
        match innermost(statement) {
            Statement::CopyTo(copy) => check_copy(copy, &state)?,
            Statement::CreateExternalTable(table) => check_external_table(table)?,
            Statement::Statement(_) | Statement::Explain(_) | Statement::Reset(_) => {}
        }
        visit(statement, &mut ClauseChecker::new(&state))
    }
}

/// Expands a leading `~/` in names of files.
fn expand_home(statement: &mut Statement) -> Result<()> {
    let Some(home) = HomeDir::of_user() else {
        return Ok(());
    };
    match innermost(statement) {
        Statement::CopyTo(copy) => {
            home.expand(&mut copy.target);
            if let CopyToSource::Relation(name) = &mut copy.source {
                expand_relation(&home, name);
            }
        }
        Statement::CreateExternalTable(table) => table
            .locations
            .iter_mut()
            .for_each(|location| home.expand(location)),
        Statement::Statement(_) | Statement::Explain(_) | Statement::Reset(_) => {}
    }
    visit(statement, &mut HomeDirVisitor(home))
}

/// Removes the quotes of the columns in PARTITIONED BY. DataFusion's parser keeps them, so that the
/// names are those of no column.
fn unquote_partitions(statement: &mut Statement) {
    let names = match innermost(statement) {
        Statement::CopyTo(copy) => &mut copy.partitioned_by,
        Statement::CreateExternalTable(table) => &mut table.table_partition_cols,
        Statement::Statement(_) | Statement::Explain(_) | Statement::Reset(_) => return,
    };
    for name in names {
        let parser = Parser::new(&GenericDialect {}).try_with_sql(name);
        // The name was parsed as an identifier before.
        if let Ok(identifier) = parser.and_then(|mut parser| parser.parse_identifier()) {
            *name = identifier.value;
        }
    }
}

/// Returns the statement inside EXPLAIN, or the statement itself.
fn innermost(mut statement: &mut Statement) -> &mut Statement {
    while let Statement::Explain(explain) = statement {
        statement = &mut explain.statement;
    }
    statement
}
